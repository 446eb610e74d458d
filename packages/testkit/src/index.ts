// Everything the testkit offers, by name; no logic.

export type { DatabaseOptions, TestDatabase } from "./postgres/databases.js";
export { localPostgres } from "./postgres/local-postgres.js";
export { connectTo, queryAt, withClient } from "./postgres/with-client.js";
export { type Child, type ChildExit, type ChildSpec, startChild } from "./process/child.js";
export { livingChildren, removeFolderAtExit } from "./process/living-children.js";
export { returnPort, takePort } from "./process/port-block.js";
export { scratchFolder } from "./process/scratch-folder.js";
export { FaultProxy } from "./proxy/fault-proxy.js";
export type { Direction, Traffic } from "./proxy/rules.js";
export { localRedis, wasmRedis } from "./redis/local-server.js";
export type { AppendFsync, ProviderName, RedisProvider, RedisServer, RedisServerSpec } from "./redis/provider.js";
export { MissingPrograms, resolvePatroniPrograms } from "./resolve/patroni.js";
export { NoPostgres } from "./resolve/postgres.js";
export { type ChromiumLaunch, chromiumLaunch } from "./servers/chromium.js";
export { CitusCluster, type CitusOptions } from "./servers/citus-cluster.js";
export { PatroniCluster, type PatroniOptions } from "./servers/patroni-cluster.js";
export type { PatroniNode } from "./servers/patroni-node.js";
export { Pgbouncer, type PgbouncerOptions } from "./servers/pgbouncer.js";
export { type PairOptions, PostgresPair } from "./servers/postgres-pair.js";
export { type PostgresOptions, PostgresServer } from "./servers/postgres-server.js";
export { type FiringAlert, Prometheus, type PrometheusOptions } from "./servers/prometheus.js";
export type { FleetWay } from "./servers/redis-fleet.js";
export { RedisFleet, type RedisFleetOptions } from "./servers/redis-fleet.js";
export type { RedisNode } from "./servers/redis-node.js";
