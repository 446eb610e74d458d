// A redis-server or valkey-server of this machine: its command line. It must not find the binary: the resolver does.
import type { RedisBinary } from "../resolve/redis.js";
import type { RedisProgram } from "./program.js";

export function nativeProgram({ binary, libraryPath = "" }: RedisBinary): RedisProgram {
  return {
    libraryPath,
    clockIsFixed: undefined,
    signature: (pid) => `process_id:${pid}\r\n`,
    launch({ appendfsync, config }, { port, dataFolder }) {
      const directives: Record<string, string> = {
        port: String(port),
        bind: "127.0.0.1",
        dir: dataFolder,
        save: "",
        appendonly: "yes",
        appendfsync,
        // Lets tests look inside (DEBUG SLEEP, DEBUG RELOAD).
        "enable-debug-command": "local",
        ...config,
      };
      return { command: binary, args: Object.entries(directives).flatMap(([name, value]) => [`--${name}`, value]), cwd: dataFolder };
    },
  };
}
