// What there is to run as a node: how it is started, how it is recognised, and what it can do.
import type { ChildSpec } from "../process/child.js";
import type { RedisServerSpec } from "./provider.js";

export interface Place {
  readonly port: number;
  readonly dataFolder: string;
}

export interface RedisProgram {
  launch(spec: RedisServerSpec, place: Place): Pick<ChildSpec, "command" | "args" | "cwd">;
  /** For LD_LIBRARY_PATH; empty when the system's libraries will do. */
  readonly libraryPath: string;
  /** A line of INFO that only this process answers with. */
  signature(pid: number, port: number): string;
  /** Why the server's clock cannot be moved, or undefined. */
  readonly clockIsFixed: string | undefined;
}
