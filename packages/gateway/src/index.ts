// The public API of the gateway as a library.

export { grantRoles, MigrationError, type MigrationReport, migrate } from "@palisade/guard/schema";
export { createGateway, type Gateway, type GatewayOptions } from "./gateway.js";
export { hashApiKey, makeApiKey, type NewApiKey } from "./http/api-keys.js";
export { openApiDocument } from "./http/openapi.js";
export { type GatewayConfig, GatewayConfigError, type Naming, type Settings } from "./settings/settings.js";
