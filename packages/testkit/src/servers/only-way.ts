// Chooses what runs the servers when no provider is named: this machine, or containers where it has
// no server to run and an engine answers. Containers never replace a server that was asked for by
// its path.

interface Way {
  /** Fails with what would help, when it can run nothing. */
  describe(): Promise<string>;
}

export interface Choice<Provider> {
  readonly provider: Provider;
  /** One line for a human: what runs, where it comes from, and why it is not the usual. */
  readonly origin: string;
}

export interface Ways<Provider> {
  readonly local: () => Promise<Provider>;
  /** Loaded only when it is needed. */
  readonly docker: () => Promise<Provider>;
  /** The path by which a server of this machine was asked for, if one was. */
  readonly asked: string | undefined;
}

export async function onlyWay<Provider extends Way>({ local, docker, asked }: Ways<Provider>): Promise<Choice<Provider>> {
  const here = await local();
  try {
    return { provider: here, origin: await here.describe() };
  } catch (cause) {
    if (asked) throw cause;
    return await inContainers(await docker(), cause as Error);
  }
}

async function inContainers<Provider extends Way>(provider: Provider, cause: Error): Promise<Choice<Provider>> {
  try {
    const why = cause.message.replace(/[.:]? Tried:.*/s, "");
    return { provider, origin: `${await provider.describe()}, because ${why}` };
  } catch (alsoMissing) {
    throw new Error(`${cause.message}\nNor can it run in a container: ${(alsoMissing as Error).message}`, { cause });
  }
}
