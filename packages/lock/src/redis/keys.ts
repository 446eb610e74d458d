// The names of everything that is stored or published. All keys of a namespace share one hash tag,
// so a node may itself be a cluster. Every kind of key has a fixed word after the tag, and the
// resource comes last and unchanged, so no resource can take the name of another key.

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
