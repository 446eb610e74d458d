// Which of several fleets a resource belongs to: the one that scores highest for its routing key.
// Adding a fleet moves resources to it and between no others, and taking one away moves only its
// own. Every process must come to the same answer, so nothing here may ever change: spec/wire.md of
// the lock has the arithmetic and examples.

/** The part of the name that decides: what is in the first braces, or else the whole name. */
export function routingKeyOf(resource: string): string {
  const open = resource.indexOf("{");
  const close = open < 0 ? -1 : resource.indexOf("}", open + 1);
  return close > open + 1 ? resource.slice(open + 1, close) : resource;
}

/** The fleet that the resource belongs to; undefined if there is none at all. */
export function homeIn<Fleet extends { readonly name: string }>(fleets: readonly Fleet[], resource: string): Fleet | undefined {
  if (fleets.length < 2) return fleets[0];
  const key = hashOf(routingKeyOf(resource));
  let home: Fleet | undefined;
  let highest = -1;
  for (const fleet of fleets) {
    const score = scoreOf(key, hashOfName(fleet.name));
    if (score < highest || (score === highest && home !== undefined && home.name < fleet.name)) continue;
    highest = score;
    home = fleet;
  }
  return home;
}

/** Resources of one lease live in one fleet, whichever fleets there will be. */
export function isOneKey(resources: readonly string[]): boolean {
  const [first = ""] = resources;
  const key = routingKeyOf(first);
  return resources.every((resource) => routingKeyOf(resource) === key);
}

type Hash = readonly [number, number];

/** There are few, and each is asked for with every lease. */
const hashes = new Map<string, Hash>();

function hashOfName(name: string): Hash {
  const known = hashes.get(name);
  if (known !== undefined) return known;
  const hash = hashOf(name);
  hashes.set(name, hash);
  return hash;
}

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** FNV-1a over the UTF-16 units, from both ends. */
function hashOf(text: string): Hash {
  let forward = FNV_OFFSET;
  let backward = FNV_OFFSET;
  for (let i = 0; i < text.length; i++) {
    forward = Math.imul(forward ^ text.charCodeAt(i), FNV_PRIME);
    backward = Math.imul(backward ^ text.charCodeAt(text.length - 1 - i), FNV_PRIME);
  }
  return [forward, backward];
}

/** From 0 to 2^32 − 1. */
function scoreOf([keyA, keyB]: Hash, [nameA, nameB]: Hash): number {
  return mixed(mixed(keyA ^ nameA) ^ keyB ^ Math.imul(nameB, FNV_PRIME)) >>> 0;
}

/** Each bit of the input changes each of the output with about even odds. */
function mixed(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
  bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
  return bits ^ (bits >>> 15);
}
