// What a test file imports in place of "vitest": the same names, with `test` knowing the servers.
export { afterAll, afterEach, beforeAll, beforeEach, describe, expect, vi } from "vitest";
export { type DatabaseTemplate, type SharedRedis, type StartFleet, sharedServers, test } from "./fixtures.js";
export type { SharedServers } from "./global-setup.js";
