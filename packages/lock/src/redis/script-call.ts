// What every script call is made of: the names of all that is stored or published, one call with
// its words and how its reply is read, and the error for a reply that no script of ours gives.
//
// All keys of a namespace begin with it in braces, which it cannot contain, so a script finds where
// it ends. Then follows a fixed word for each kind of key, and the resource comes last and unchanged:
// no resource can take the name of another key.

export interface Keys {
  /**
   * The node's record: its admission, its fleet, and its floor, the highest token ever stored for
   * any resource.
   */
  readonly node: string;
  /** The lock: its value names the owner. */
  lock(resource: string): string;
  /** Where one process is told of releases: its tickets name the inbox, and so does the channel. */
  readonly inbox: string;
  readonly inboxChannel: string;
  /** The counter: the highest token stored for the resource. */
  token(resource: string): string;
  /** Numbers of the caller's that only rise, by name. */
  readonly marks: string;
}

/**
 * The keys of a namespace, which must not be empty nor contain braces. `inbox` names the
 * process, where it waits.
 */
export function keysOf(namespace: string, inbox = ""): Keys {
  if (namespace === "" || /[{}]/.test(namespace)) throw new RangeError("a namespace must not be empty nor contain braces");
  const lockPrefix = `{${namespace}}:lock:`;
  const tokenPrefix = `{${namespace}}:token:`;
  return {
    node: `{${namespace}}:node`,
    lock: (resource) => lockPrefix + resource,
    token: (resource) => tokenPrefix + resource,
    marks: `{${namespace}}:marks`,
    inbox,
    inboxChannel: `{${namespace}}:inbox:${inbox}`,
  };
}

/** One script call by itself, outside of the pipeline. */
export interface ScriptCall<Reply> {
  readonly source: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  read(reply: unknown): Reply;
}

/** A reply that none of our scripts gives: something else answered. */
export class GarbageReply extends Error {
  constructor(reply: unknown) {
    super(`garbage reply ${(JSON.stringify(reply) ?? String(reply)).slice(0, 60)}`);
  }
}
