// Everything the testkit offers, by name; no logic.

export { numberOf, readArguments, UsageError } from "./command-line.js";
export { connectTo, PostgresDatabases, queryAt, type TestDatabase, withClient } from "./postgres/databases.js";
export { localPostgres } from "./postgres/local.js";
export { CitusCluster, type CitusOptions, PostgresPair, PostgresServer } from "./postgres/server.js";
export { Closers } from "./process/all-started.js";
export { livingChildren, scratchFolder } from "./process/orphans.js";
export { returnPort, takePort } from "./process/port-block.js";
export { isRunning, processState, untilStopped } from "./process/process-tree.js";
export {
  AskedChild,
  answerParent,
  type Child,
  type ChildExit,
  gatewayProgram,
  type Serving,
  startChild,
  startNode,
  startServing,
} from "./process/program.js";
export { type Address, addressOf, FaultProxy } from "./proxy/fault-proxy.js";
export { type FleetWay, RedisFleet, type RedisNode } from "./redis/fleet.js";
export { localRedis, wasmRedis } from "./redis/server.js";
export { chromiumLaunch, Pgbouncer, type PgbouncerOptions, Prometheus } from "./servers/distribution.js";
export { MissingPrograms, PatroniCluster, type PatroniNode } from "./servers/patroni.js";
