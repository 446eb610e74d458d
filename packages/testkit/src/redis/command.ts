// One raw command over a connection of its own; never retried: a test asks what happened.

const COMMAND_TIMEOUT_MS = 5_000;

/** ioredis's reply. An error reply is thrown as it is; a server that does not answer is named. */
export async function runCommand(
  server: { readonly url: string; readonly name: string },
  command: string,
  args: readonly (string | number)[],
): Promise<unknown> {
  // Loaded when it is needed: it is most of what a program that imports the testkit would wait for.
  const { Redis, ReplyError } = await import("ioredis");
  const client = new Redis(server.url, {
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: COMMAND_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    disconnectTimeout: 100,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
  });
  // ioredis rejects with "Connection is closed." and tells the reason only here.
  let reason: Error | undefined;
  client.on("error", (cause: Error) => {
    reason = cause;
  });
  try {
    await client.connect();
    return await client.call(command, ...args);
  } catch (cause) {
    if (cause instanceof ReplyError) throw cause;
    throw new Error(`${server.name} did not answer ${command}: ${(reason ?? (cause as Error)).message}`, { cause });
  } finally {
    client.disconnect();
  }
}
