// Everything the testkit offers, by name; no logic.

export type { DatabaseOptions, TestDatabase } from "./postgres/databases.js";
export { type PostgresOptions, PostgresServer } from "./postgres/server.js";
export { type Child, type ChildExit, type ChildSpec, startChild } from "./process/child.js";
export { livingChildren, removeFolderAtExit } from "./process/living-children.js";
