// Everything the testkit offers, by name; no logic.

export { connectTo, type DatabaseOptions, queryAt, type TestDatabase, withClient } from "./postgres/databases.js";
export { localPostgres } from "./postgres/local.js";
export { type PairOptions, type PostgresOptions, PostgresPair, PostgresServer } from "./postgres/server.js";
export { type Child, type ChildExit, type ChildSpec, startChild, startNode } from "./process/child.js";
export { livingChildren } from "./process/orphans.js";
export { returnPort, takePort } from "./process/port-block.js";
export { processState, scratchFolder, untilStopped } from "./process/process-state.js";
export { AskedChild, answerParent } from "./process/rpc.js";
export { gatewayProgram, type Serving, startServing } from "./process/serving.js";
export { NoPostgres } from "./programs/postgres.js";
export type { Direction, Traffic } from "./proxy/connection.js";
export { FaultProxy } from "./proxy/fault-proxy.js";
export { type FleetWay, RedisFleet, type RedisFleetOptions, type RedisNode } from "./redis/fleet.js";
export { type AppendFsync, localRedis, type RedisProvider, type RedisServer, type RedisServerSpec, wasmRedis } from "./redis/server.js";
export { type ChromiumLaunch, chromiumLaunch } from "./servers/chromium.js";
export { CitusCluster, type CitusOptions } from "./servers/citus-cluster.js";
export { MissingPrograms, PatroniCluster, type PatroniNode, type PatroniOptions, resolvePatroniPrograms } from "./servers/patroni.js";
export { Pgbouncer, type PgbouncerOptions } from "./servers/pgbouncer.js";
export { type FiringAlert, Prometheus, type PrometheusOptions } from "./servers/prometheus.js";
export { element, escaped, svgDocument } from "./svg.js";
