// The names of everything we store: the only place that knows them. All keys of a namespace share one hash tag, so a member of the fleet may itself be a
// cluster. Every kind of key has a fixed word after the tag and a resource comes last and unchanged, so no resource can take the name of another key.

export interface Keys {
  /** The node's record: life, epoch, fleet, and its floor: the highest token ever stored for any resource. */
  readonly node: string;
  /** Who holds the resource; also the name of the channel on which everybody who waits for it is counted. */
  lock(resource: string): string;
  /** The channel on which those who wait in this seat are told of a release. */
  seat(resource: string, seat: number): string;
  /** Highest token stored for the resource. */
  token(resource: string): string;
}

/** The keys of a namespace, which must not be empty nor contain braces. */
export function keysOf(namespace: string): Keys {
  if (namespace === "" || /[{}]/.test(namespace)) throw new RangeError("a namespace must not be empty nor contain braces");
  const lockPrefix = `{${namespace}}:lock:`;
  const tokenPrefix = `{${namespace}}:token:`;
  return {
    node: `{${namespace}}:node`,
    lock: (resource) => lockPrefix + resource,
    token: (resource) => tokenPrefix + resource,
    seat: (resource, seat) => `{${namespace}}:seat:${seat}:${resource}`,
  };
}
