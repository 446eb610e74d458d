// Mutants of the operator's page: what it lets whom do to a holder.

/** @type {readonly import("../mutant.mjs").Mutant[]} */
export const page = [
  {
    name: "lock-taken-from-the-next-holder",
    promise: "L2",
    file: "packages/gateway/src/page/force-release.ts",
    find: 'if (state === "free" || holder !== order.holder || token !== order.token)',
    replace: 'if (state === "free" || (holder !== order.holder && token !== order.token))',
    breaks: "An operator who was shown one holder takes the lock from the next one.",
    tests: ["real/page.test.ts"],
  },
  {
    name: "lock-taken-without-the-admin-scope",
    promise: "L2",
    file: "packages/gateway/src/page/page.ts",
    find: '?? authorize(context.principal, "admin", resource)',
    replace: '?? authorize(context.principal, "observe", resource)',
    breaks: "A credential that may only look takes locks away.",
    tests: ["real/page.test.ts"],
  },
  {
    name: "lock-taken-and-holder-not-fenced",
    promise: "G1",
    file: "packages/gateway/src/page/force-release.ts",
    find: "sealed: await raised(store, order, fence)",
    replace: "sealed: fence > 0 || (await raised(store, order, fence))",
    breaks: "The holder that lost its lock on the page still writes.",
    tests: ["real/page.test.ts"],
  },
  {
    name: "page-that-makes-a-trusting-gateway-ask",
    promise: "G4",
    file: "packages/gateway/src/gateway.ts",
    find: 'return verifyMode(this.#settings) === "off" ? undefined : this.#lock;',
    replace: "return this.#lock;",
    breaks: "With the page on, a gateway that is told to take tokens on trust verifies them all the same.",
    tests: ["real/page.test.ts"],
  },
];
