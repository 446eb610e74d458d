// What a test file imports in place of "vitest": the same names, with `test` knowing the servers.
export { afterAll, afterEach, beforeAll, beforeEach, describe, expect, vi } from "vitest";
export { type DatabaseTemplate, type SharedRedis, type StartFleet, test } from "./fixtures.js";
export { type SharedServers, sharedServers } from "./shared-servers.js";
