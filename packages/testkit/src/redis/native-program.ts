// A redis-server or valkey-server of this machine: its command line.
import type { RedisBinary } from "../resolve/redis.js";
import { directivesOf } from "./directives.js";
import type { RedisProgram } from "./program.js";

export function nativeProgram({ binary, libraryPath = "" }: RedisBinary): RedisProgram {
  return {
    libraryPath,
    clockIsFixed: undefined,
    signature: (pid) => `process_id:${pid}\r\n`,
    launch(spec, { port, dataFolder }) {
      const host = "127.0.0.1";
      const listen = { port: String(port), bind: host, dir: dataFolder };
      const directives = { ...listen, ...directivesOf(spec, { host, port }) };
      return { command: binary, args: Object.entries(directives).flatMap(([name, value]) => [`--${name}`, value]), cwd: dataFolder };
    },
  };
}
