#!/usr/bin/env node
// The program of `npx @palisade/dev`, and `npm run dev`: the stack until Ctrl-C or SIGTERM, with its
// addresses and a first thing to try. Exit codes: 0 ended by a signal, 1 failed, 2 wrong arguments.
import { createLocker } from "@palisade/lock";
import { UsageError } from "@palisade/testkit";
import { readOptions, usage } from "./command-line.js";
import { API_KEY, type Stack, startStack } from "./stack.js";

const RESOURCE = "orders/42";
const startedAt = performance.now();

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const { signalled, isOver } = nextSignal();
  try {
    const options = readOptions(args);
    if (options === "help") {
      console.log(usage);
      return 0;
    }
    // A signal during the start ends it when it is done; a second one ends it at once.
    await using stack = await startStack(options);
    if (!isOver()) console.log(await greeting(stack));
    await signalled;
    return 0;
  } catch (error) {
    console.error(`palisade-dev: ${error instanceof Error ? error.message : String(error)}`);
    return error instanceof UsageError ? 2 : 1;
  }
}

/** The second signal is left to what started the servers, which then ends them all at once. */
function nextSignal(): { readonly signalled: Promise<void>; readonly isOver: () => boolean } {
  let isOver = false;
  const signalled = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.once(signal, () => {
        isOver = true;
        resolve();
      });
  });
  return { signalled, isOver: () => isOver };
}

async function greeting({ gatewayUrl, adminUrl, redisUrls, databaseUrl, description }: Stack): Promise<string> {
  const { older, newer } = await issueTwoTokens(redisUrls);
  const url = `${gatewayUrl}/v1/resources/${RESOURCE}`;
  const put = (token: number, writtenBy: string): string =>
    `curl -i -X PUT ${url} -H 'Authorization: Bearer ${API_KEY}' -H 'Fencing-Token: ${token}' ` +
    `-H 'Content-Type: application/json' -d '${JSON.stringify({ writtenBy })}'`;
  return `${description.join("\n")}

gateway   ${gatewayUrl}
page      ${adminUrl}/page/   what is held and what is refused, in a browser; it asks for the key
probes    ${adminUrl}/ready   ${adminUrl}/metrics
API key   ${API_KEY}
redis     ${redisUrls.join(",")}
postgres  ${databaseUrl}

For npx @palisade/cli (refused, ls, watch, doctor, …):
export PALISADE_REDIS_URLS=${redisUrls.join(",")} PALISADE_GATEWAY_URL=${gatewayUrl} PALISADE_API_KEY=${API_KEY}

Ready after ${((performance.now() - startedAt) / 1_000).toFixed(1)} s. Ctrl-C ends everything and leaves nothing behind.

Try it. Two leases of ${RESOURCE} were issued just now, one after the other. The holder of the newer one writes; then the older one wakes up:

${put(newer, "the newer lease")}

${put(older, "the older lease")}

curl -i ${url} -H 'Authorization: Bearer ${API_KEY}'`;
}

/** Two leases, one after the other; both are over when this returns. */
async function issueTwoTokens(nodes: readonly string[]): Promise<{ readonly older: number; readonly newer: number }> {
  await using locker = createLocker({ nodes });
  await locker.ready();
  const take = async (): Promise<number> => {
    await using lease = await locker.acquire(RESOURCE);
    return lease.token;
  };
  return { older: await take(), newer: await take() };
}
