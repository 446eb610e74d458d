// A program of this workspace that serves, as a process of its own: the gateway, or one that says
// where it listens as the gateway does, in a line of its log with `"msg":"listening"`.
import { fileURLToPath } from "node:url";
import { type Child, type ChildSpec, startNode } from "./child.js";

/** Known by its place only: nothing of the gateway is imported here. */
export const gatewayProgram = fileURLToPath(new URL("../../../gateway/dist/main.js", import.meta.url));

export interface Serving extends AsyncDisposable {
  readonly child: Child;
  readonly url: string;
  readonly adminUrl: string;
}

interface ServingSpec extends Pick<ChildSpec, "env" | "onLine" | "onMessage"> {
  /** palisade-gateway when absent. */
  readonly name?: string;
  readonly program?: string;
  /** Of Node, before the program. */
  readonly nodeOptions?: readonly string[];
  readonly withinMs?: number;
}

/** Started on free ports of this machine, when it says where. Fails with its last words. */
export async function startServing(spec: ServingSpec): Promise<Serving> {
  const { name = "palisade-gateway", program = gatewayProgram, nodeOptions = [], withinMs, env, ...rest } = spec;
  const [first = program, ...others] = [...nodeOptions, program];
  // What was set for other gateways must not reach this one.
  const foreign = Object.keys(process.env).filter((variable) => variable.startsWith("PALISADE_") || variable === "ADMIN_HOST");
  const child = startNode(first, others, {
    ...rest,
    name,
    env: {
      ...Object.fromEntries(foreign.map((variable) => [variable, undefined])),
      HOST: "127.0.0.1",
      PORT: "0",
      ADMIN_PORT: "0",
      ...env,
    },
  });
  const [line] = await child.says(/^{.*"msg":"listening".*}$/, withinMs);
  const { url, adminUrl = url } = JSON.parse(line) as { readonly url: string; readonly adminUrl?: string };
  return { child, url, adminUrl, [Symbol.asyncDispose]: async () => void (await child.stop()) };
}
