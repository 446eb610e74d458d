// The operator's page of one gateway: its files, what it answers, and the one thing it can do.
import { LockError } from "@palisade/lock";
import { z } from "zod";
import { files } from "./bundle.generated.js";
import type { Caller, PageAnswer, PageRoute, WatchedGateway, WatchedLock } from "./gateway.js";
import { Live } from "./live.js";
import { LockWatch, messageOf } from "./lock-watch.js";
import type { LeaseQuestion, NotReleased, Released, ReleaseOrder, ResourceView } from "./messages.js";

/** As long as a name may be in the store. */
const MAX_NAME = 512;
const MAX_ENTRIES = 100;
const name = z.string().min(1).max(MAX_NAME);
const count = z
  .string()
  .regex(/^[0-9]{1,6}$/)
  .transform(Number);
const leaseQuestion: z.ZodType<LeaseQuestion> = z.strictObject({
  search: z.string().max(MAX_NAME).default(""),
  order: z.enum(["waiting", "name", "ends", "held"]).default("waiting"),
  from: count.default(0),
  count: count.pipe(z.int().min(1).max(200)).default(100),
});
const releaseOrder: z.ZodType<ReleaseOrder> = z.strictObject({
  resource: name,
  reason: z.string().trim().min(1).max(1_000),
  token: z.int().min(1),
});

const route = <Input>(one: PageRoute<Input>): PageRoute => one;

/** What the browser loads, by its path below /page/. */
export const pageFiles = Object.entries(files).map(([path, { type, text }]) => ({
  path,
  text,
  headers: {
    "Content-Type": type,
    "Cache-Control": "no-cache",
    // No script, style or connection but its own, and no frame around it.
    "Content-Security-Policy":
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
  },
}));

export class OperatorPage {
  readonly routes: readonly PageRoute[];
  readonly #gateway: WatchedGateway;
  readonly #watch: LockWatch | undefined;
  readonly #live: Live;

  constructor(gateway: WatchedGateway) {
    const { lock } = gateway;
    this.#gateway = gateway;
    const watch = lock && new LockWatch(lock);
    this.#watch = watch;
    this.#live = new Live(gateway, watch);
    this.routes = [
      route({
        method: "get",
        path: "live",
        schema: z.strictObject({}),
        answer: (_nothing, caller) => {
          if (this.#live.isFull) return { unavailable: "Too many browsers watch this gateway.", retryAfterSeconds: 5 };
          return { stream: (response) => this.#live.begin(caller, response) };
        },
      }),
      route({
        method: "get",
        path: "resource",
        schema: z.strictObject({ name }),
        about: (asked) => asked.name,
        needs: ["observe"],
        answer: async (asked, caller) => ({ json: await this.#viewOf(asked.name, caller) }),
      }),
      ...(lock && watch ? routesOfLock(gateway, lock, watch) : []),
    ];
  }

  close(): void {
    this.#live.close();
    this.#watch?.close();
  }

  async #viewOf(resource: string, caller: Caller): Promise<ResourceView> {
    const { refusals } = this.#gateway;
    const [lock, fence, history] = await Promise.all([
      this.#watch?.lockView(resource),
      this.#gateway.fence(resource),
      this.#gateway.history(resource, MAX_ENTRIES),
    ]);
    return {
      at: Date.now(),
      lock,
      fence,
      history,
      refusals: refusals.newest(MAX_ENTRIES, 0, (row) => row.resource === resource),
      refusedSince: refusals.since,
      mayRelease: lock !== undefined && caller.may("admin", resource),
    };
  }
}

function routesOfLock(gateway: WatchedGateway, lock: WatchedLock, watch: LockWatch): readonly PageRoute[] {
  return [
    route({
      method: "get",
      path: "leases",
      schema: leaseQuestion,
      answer: async (question, caller) => ({ json: await watch.page(question, caller) }),
    }),
    route({
      method: "post",
      path: "force-release",
      schema: releaseOrder,
      about: ({ resource }) => resource,
      needs: ["observe", "admin"],
      answer: async (order, caller): Promise<PageAnswer> => {
        const done = await takeAway(gateway, lock, { ...order, by: caller.id }).catch(messageOf);
        gateway.wasToBeTakenAway({ ...order, done }, caller);
        watch.lookAgain();
        if (typeof done !== "string") return { json: done };
        return { unavailable: `The lock's nodes could not do it: ${done}`, retryAfterSeconds: 1 };
      },
    }),
  ];
}

type Order = ReleaseOrder & { readonly by: string };

/** Raises the fence as well, so that the old holder's writes are refused from then on. */
async function takeAway(gateway: WatchedGateway, lock: WatchedLock, order: Order): Promise<Released | NotReleased> {
  const { resource, reason, token, by } = order;
  const done = await lock.fleet.forceRelease(resource, { reason, token }).catch(overBy);
  if (done instanceof LockError) return { released: false, because: done.message };
  const { fence, removed } = done;
  const sealed = await gateway.raiseFence({ resource, token: fence, reason, by });
  return { released: true, removed, fence, sealed };
}

/** The lease that was shown is over. */
function overBy(error: unknown): LockError {
  if (error instanceof LockError && error.code === "LEASE_LOST") return error;
  throw error;
}
