// An incident for real, as an operator sees it: a node is killed, a holder is paused, its lock is
// taken away, it wakes up and writes. Prints what the terminal shows; `--write` puts it into the
// README. Needs the built packages.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { createGateway } from "@palisade/gateway";
import { PostgresServer, RedisFleet } from "@palisade/testkit";
import { run } from "../dist/run.js";

const COLUMNS = 110;

/** Holds the lock, is stopped by a signal, and writes when it goes on. */
const worker = `
  import { createGatewayClient } from "@palisade/client";
  import { createLocker } from "@palisade/lock";
  const locker = createLocker({ nodes: process.env.PALISADE_REDIS_URLS.split(","), label: "worker-7 (host b)", ttlMs: 60_000 });
  const client = createGatewayClient({ url: process.env.PALISADE_GATEWAY_URL });
  const { token } = await locker.acquire("orders/42");
  await client.put("orders/42", { status: "paid" }, { token });
  console.log("holds");
  process.stdin.once("data", async () => {
    const { code, presentedToken, currentToken } = await client.put("orders/42", { status: "cancelled" }, { token });
    console.log(\`worker-7 wakes up and writes with token \${presentedToken}: \${code}, the fence is \${currentToken}\`);
    process.exit();
  });
`;

const fleet = await RedisFleet.start({ nodes: 3 });
const postgres = await PostgresServer.start();
const gateway = createGateway({ databaseUrl: postgres.url, apiKeys: "none", port: 0, adminPort: 0, logLevel: "silent" });
const told = [];
try {
  await gateway.listen();
  const env = { PALISADE_REDIS_URLS: fleet.urls.join(","), PALISADE_GATEWAY_URL: gateway.url, NO_COLOR: "1" };
  const holder = spawn(process.execPath, ["--input-type=module", "-e", worker], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: holder.stdout })[Symbol.asyncIterator]();
  await lines.next();
  await fleet.node("n2").kill();
  holder.kill("SIGSTOP");
  told.push("# host b stands still, and n2 was killed");
  await shown(env, ["nodes"]);
  await shown(env, ["inspect", "orders/42"]);
  await shown(env, ["force-release", "orders/42", "--reason", "host b is gone", "--yes"]);
  holder.kill("SIGCONT");
  holder.stdin.write("go on\n");
  told.push(`# ${(await lines.next()).value}`, "");
  await shown(env, ["refused", "orders/", "--since", "10"]);
} finally {
  await gateway.close();
  await Promise.all([fleet.stop(), postgres.stop()]);
}
const transcript = `\`\`\`\n${told.join("\n").trimEnd()}\n\`\`\`\n`;
if (process.argv.includes("--write")) {
  const readme = new URL("../README.md", import.meta.url);
  const text = readFileSync(readme, "utf8");
  writeFileSync(
    readme,
    text.replace(/(An incident[^\n]*\n\n)```\n[\s\S]*?\n```\n/, (_, title) => title + transcript),
  );
} else process.stdout.write(transcript);

async function shown(env, args) {
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: COLUMNS });
  const errors = Object.assign(new PassThrough(), { isTTY: true });
  await run({ args, env, input: new PassThrough(), output, errors });
  const text = `${output.read() ?? ""}${errors.read() ?? ""}`;
  const words = args.map((word) => (/\s/.test(word) ? `"${word}"` : word));
  told.push(`$ palisade ${words.join(" ")}`, text.trimEnd(), "");
}
