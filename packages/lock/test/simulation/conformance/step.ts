// What the two servers are asked in turn: calls of scripts as the lock writes them, time that passes, and what can happen to a memory. Times are chosen so that nothing is ever
// due within the half minute that a real server may be slower: waits are whole multiples of a minute, lives are half a step more.
import fc from "fast-check";
import type { GrantQuestion, Ownership } from "#lock/protocol/node.js";
import type { AdmitArguments, OpenAdmissionArguments } from "#lock/redis/node-record.js";
import type { RequestName } from "#lock/redis/requests.js";

export const GRAIN_MS = 60_000;
export const RETENTION_MS = 6 * GRAIN_MS + GRAIN_MS / 2;

/** All that any kind of request may ask. */
export type Question = Ownership &
  GrantQuestion & { readonly token: number; readonly turn: number; readonly resource: string; readonly remove: "holder" | "nothing" };

/** A run_id of this server, as the lock would know it. */
export type Life = "present" | "past";

export type Step =
  | { readonly kind: "greet" }
  | { readonly kind: "request"; readonly name: RequestName; readonly questions: readonly [Question, ...Question[]] }
  | { readonly kind: "status" }
  | { readonly kind: "mark"; readonly given: OpenAdmissionArguments }
  | { readonly kind: "visit"; readonly epoch: string }
  | { readonly kind: "admit"; readonly life: Life; readonly given: Omit<AdmitArguments, "runId"> }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "restart"; readonly forget: boolean }
  | { readonly kind: "flush" }
  | { readonly kind: "flush scripts" }
  | { readonly kind: "set"; readonly what: "token" | "lock"; readonly resource: string; readonly value: string }
  | { readonly kind: "drop field"; readonly field: string }
  | { readonly kind: "listen"; readonly resource: string; readonly seat: number };

const resource = fc.constantFrom("a", "b", "c:d");
/** Two as long as the lock makes them, and one that is not. */
const owner = fc.constantFrom("one-------------------", "two-------------------", "three");
const ticket = fc.constantFrom("ticket1", "ticket2");
const token = fc.oneof(fc.nat(40), fc.constantFrom(1, 1_000, 999_999_999_999_998, 999_999_999_999_999));
const lifeMs = fc.integer({ min: 0, max: 4 }).map((grains) => grains * GRAIN_MS + GRAIN_MS / 2);

const questions = fc
  .tuple(
    fc.uniqueArray(resource, { minLength: 1, maxLength: 2 }),
    fc.array(fc.record({ owner, token }), { minLength: 1, maxLength: 3 }),
    fc.record({ ttlMs: lifeMs, turn: fc.nat(40), remove: fc.constantFrom("holder" as const, "nothing" as const) }),
  )
  .map(([resources, asked, shared]) =>
    asked.map(
      ({ owner: name, token: number }): Question => ({
        ...shared,
        resources,
        resource: resources[0] ?? "a",
        owner: name,
        label: `label of ${name}`,
        ...(number % 3 === 0 ? { hasWaited: true as const } : {}),
        token: Math.max(1, number),
      }),
    ),
  ) as fc.Arbitrary<readonly Question[]> as fc.Arbitrary<readonly [Question, ...Question[]]>;

const request = fc.record({
  kind: fc.constant("request" as const),
  name: fc.constantFrom<RequestName>("grant", "grant", "grant", "seal", "extend", "heal", "release", "inspect", "raise"),
  questions,
});

const admit = fc.record({
  kind: fc.constant("admit" as const),
  life: fc.constantFrom<Life>("present", "present", "present", "past"),
  given: fc.record({
    ticket,
    floor: fc.oneof(fc.nat(60), fc.constant(999_999_999_999_990)),
    epoch: fc.constantFrom("epoch1", "epoch2"),
    id: fc.constantFrom("id1", "id2"),
    fleet: fc.constant("fleet"),
    size: fc.constant(3),
    maxTtlMs: fc.constant(20_000),
    durable: fc.constantFrom("durable" as const, "not durable" as const),
  }),
});

const mark = fc.record({
  kind: fc.constant("mark" as const),
  given: fc.record({
    ticket,
    id: fc.constantFrom("id1", "id2"),
    // Later than any clock: which of the two clocks is taken otherwise, the tests of the lock on real servers tell.
    wallMs: fc.constantFrom(4_000_000_000_007, 4_000_000_000_070),
    maxTtlMs: fc.constantFrom(10_000, 20_000),
    claim: fc.constantFrom("me", "you"),
    claimMs: fc.constant(GRAIN_MS + GRAIN_MS / 2),
  }),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 40, arbitrary: request },
  { weight: 3, arbitrary: fc.constant({ kind: "greet" as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: "status" as const }) },
  { weight: 4, arbitrary: mark },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("visit" as const), epoch: fc.constantFrom("epoch3", "epoch4") }) },
  { weight: 5, arbitrary: admit },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 4 }).map((grains) => grains * GRAIN_MS) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const), forget: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ kind: "flush" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "flush scripts" as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("set" as const),
      what: fc.constantFrom("token" as const, "lock" as const),
      resource,
      value: fc.constantFrom("7", "999999999999999", "not a number", "-3", "stranger"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("drop field" as const),
      field: fc.constantFrom("floor", "admitted", "id"),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("listen" as const), resource, seat: fc.nat(15) }) },
);

/** Begins as a node does that is met for the first time, so that most of what follows is answered. */
export const sequences: fc.Arbitrary<readonly Step[]> = fc
  .tuple(mark, admit, fc.array(step, { minLength: 5, maxLength: 40, size: "max" }))
  .map(([first, second, rest]) => [
    { kind: "greet" },
    first,
    { ...second, life: "present", given: { ...second.given, ticket: first.given.ticket } },
    ...rest,
  ]);
