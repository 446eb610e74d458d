// Mutants of how calls and replies travel on one connection (T1, T2, L1, W1).
const file = "packages/lock/src/redis/client-link.ts";

/** @type {readonly import("../mutant.mjs").Mutant[]} */
export const connections = [
  {
    name: "socket-taken-from-a-client-that-waits",
    promise: "T2",
    file,
    find: "return client.commandQueue.length === 0;",
    replace: "return client.commandQueue.length >= 0;",
    breaks: "The reply to another's command is taken for the answer to a request: an OK for a login, or another's token.",
    tests: ["real/redis/connecting.test.ts"],
  },
  {
    name: "refused-channels-wait-for-more-replies",
    promise: "W1",
    file,
    find: "if (reply instanceof Error) pending.reject(reply);\n    else if (pending.replies-- > 1) return;",
    replace: "if (pending.replies-- > 1) return;\n    if (reply instanceof Error) pending.reject(reply);",
    breaks: "After a refused subscription every confirmation is taken for an earlier one.",
    tests: ["unit/redis/client-link.test.ts"],
  },
  {
    name: "unasked-replies-are-skipped",
    promise: "T2",
    file,
    find: 'if (pending === undefined) throw new ProtocolError("a reply that was not asked for");',
    replace: "if (pending === undefined) return;",
    breaks: "A server whose replies are out of step with the requests goes on answering one with the token of another.",
    tests: ["unit/redis/client-link.test.ts"],
  },
  {
    name: "calls-of-a-lost-connection-never-end",
    promise: "L1",
    file,
    find: "for (const { reject } of this.#pending.splice(0)) reject(new Error(CLOSED));",
    replace: "this.#pending.splice(0);",
    breaks: "What was on its way when a connection was lost is waited for until its time limit.",
    tests: ["unit/redis/client-link.test.ts"],
  },
  {
    name: "half-a-reply-is-a-reply",
    promise: "T1",
    file,
    find: "if (at === bytes.length - 1) return INCOMPLETE;",
    replace: "if (at === bytes.length - 1) return number;",
    breaks: "A token whose digits arrive in two pieces is read as a smaller one.",
    tests: ["unit/redis/reply-reader.test.ts"],
  },
];
