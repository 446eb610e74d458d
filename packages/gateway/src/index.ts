// The public API of the gateway as a library.

export { createGateway, type Gateway, type GatewayOptions, type OpenOptions } from "./gateway.js";
export { hashApiKey, makeApiKey, type NewApiKey } from "./http/auth.js";
export { openApiDocument } from "./http/openapi.js";
export { type FenceFinding, type FindingKind, inspectFences } from "./own-tables/doctor.js";
export { type FencedTable, fencedTables, unfence } from "./own-tables/fenced-tables.js";
export {
  type FencedLease,
  type FencedTransactionCode,
  FencedTransactionError,
  withFencedTransaction,
} from "./own-tables/fenced-transaction.js";
export { GuardError, type GuardRefusal, type GuardRequest, guard } from "./own-tables/guard.js";
export type {
  DrizzleTransaction,
  KnexTransaction,
  OpenTransaction,
  PgTransaction,
  PostgresJsTransaction,
  PrismaTransaction,
} from "./own-tables/statement.js";
export type { TransactionSource } from "./own-tables/transaction-source.js";
export { type GatewayConfig, GatewayConfigError } from "./settings/config.js";
export { grantRoles, MigrationError, type MigrationReport, migrate } from "./store/migrate.js";
