// The machines of `npm run fresh`. The first four meet every circumstance at least once; the others
// are run when they are named.

/**
 * @typedef {object} Machine
 * @property {"bookworm" | "trixie"} release Debian's name
 * @property {20 | 22 | 24} node
 * @property {"root" | "dev"} user root has a home with mode 0700
 * @property {string} clone the folder of the clone; ~ is the user's home
 * @property {boolean} [usual] run when no case is named
 * @property {boolean} [ci] CI=true
 * @property {boolean} [closedHome] HOME cannot be written
 * @property {boolean} [closedTmp] nothing in /tmp can be executed
 * @property {boolean} [commandIsFirst] process 1 has the command on its command line, as in `docker
 * run … bash -c "npm test"`
 * @property {boolean} [offlineToo] once more without network
 */

/** @type {Readonly<Record<string, Machine>>} */
export const cases = {
  "bookworm-root": { usual: true, release: "bookworm", node: 20, user: "root", clone: "~/palisade", commandIsFirst: true },
  "bookworm-user": { usual: true, release: "bookworm", node: 22, user: "dev", clone: "~/my work/palisade", ci: true },
  "trixie-root": { usual: true, release: "trixie", node: 24, user: "root", clone: "~/$HOME $1/palisade", offlineToo: true },
  "trixie-user": { usual: true, release: "trixie", node: 20, user: "dev", clone: "/srv/palisade", closedHome: true },
  "bookworm-tmp": { release: "bookworm", node: 24, user: "dev", clone: "~/palisade", closedTmp: true },
  "trixie-ci": { release: "trixie", node: 22, user: "root", clone: "/srv/palisade", ci: true },
};

/** @param {Machine} machine */
export function described({ release, node, user, clone, ci, closedHome, closedTmp, commandIsFirst, offlineToo }) {
  return [
    `${release}, Node ${node}, ${user === "root" ? "as root in a 0700 home" : "as another user"}, in ${clone}`,
    ...(ci ? ["CI=true"] : []),
    ...(closedHome ? ["HOME not writable"] : []),
    ...(closedTmp ? ["/tmp noexec"] : []),
    ...(commandIsFirst ? ["the command is process 1"] : []),
    ...(offlineToo ? ["again without network"] : []),
  ].join(", ");
}
