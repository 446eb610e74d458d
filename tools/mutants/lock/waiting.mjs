// Mutants of who waits: campaigns, the queue of a process, and the waiters of the fake.

/** @type {readonly import("../mutant.mjs").Mutant[]} */
export const waiting = [
  {
    name: "refused-after-the-term-ends-the-campaign",
    promise: "L1",
    file: "packages/lock/src/waiting/campaign.ts",
    find: "if (term.leads) throw error;",
    replace: "if (!term.signal.aborted) throw error;",
    breaks: "A leader that was paused and whose write is then refused never stands for election again.",
    tests: ["real/campaign.test.ts"],
  },
  {
    name: "campaign-deaf-to-its-signal",
    promise: "L1",
    file: "packages/lock/src/waiting/campaign.ts",
    find: "onAbort(signal, stop)",
    replace: "onAbort(signal, () => signal.aborted || stop())",
    breaks: "A process that is told to end by its signal goes on to lead.",
    tests: ["real/campaign.test.ts"],
  },
  {
    name: "list-of-names-in-the-line-of-one",
    promise: "W1",
    file: "packages/lock/src/waiting/wait-for-lease.ts",
    find: '.join("\\ud800")',
    replace: '.join("\\n")',
    breaks: "A resource with a line break in its name waits behind a call for other resources.",
    tests: ["real/waiting.test.ts"],
  },
  {
    name: "fake-notices-by-a-faked-microtask",
    promise: "W1",
    file: "packages/lock/src/testing/fake-node.ts",
    find: "void Promise.resolve().then(run);",
    replace: "queueMicrotask(run);",
    breaks: "In users' unit tests whose framework fakes microtasks a waiter is not told of a release.",
    tests: ["real/fake-locker.test.ts"],
  },
  {
    name: "disagreement-listed-as-free",
    promise: "L2",
    file: "packages/lock/src/lease/list-held.ts",
    find: "?? askedAgain(context, name)",
    replace: '?? (name === "" ? askedAgain(context, name) : undefined)',
    breaks: "A resource whose holders have no quorum each is not listed, and looks free.",
    tests: ["real/list-held.test.ts"],
  },
  {
    name: "leases-listed-by-their-counters",
    promise: "L2",
    file: "packages/lock/src/redis/lua/list-held.lua",
    find: "if type(value) == 'string' and left ~= -2 then",
    replace: "if type(value) == 'string' and left ~= -2 and redis.call('EXISTS', ARGV[4] .. string.sub(key, #ARGV[3] + 1)) == 1 then",
    breaks: "A lease that is renewed for longer than its counter is kept is not listed, and looks free.",
    tests: ["real/list-held.test.ts"],
  },
];
