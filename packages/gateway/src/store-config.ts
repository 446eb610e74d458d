// What a store is opened with.
import type { VerifyToken } from "./fence/verdict.js";
import type { StoreEvent } from "./fenced-store.js";
import type { CallConfig } from "./guard/call.js";
import type { StoreMemory } from "./store/lineage.js";
import type { Durability } from "./store/session.js";
import type { StoreLimits } from "./store/store-limits.js";

export type StoreConfig = Partial<{ readonly [Limit in keyof StoreLimits]: StoreLimits[Limit] | undefined }> &
  CallConfig & {
    readonly databaseUrl: string;
    readonly durability?: Durability | undefined;
    readonly history?: "off" | "on" | undefined;
    /** How many may read changes at a time. */
    readonly maxChangeReaders?: number | undefined;
    /** Whether writes that are refused are kept. */
    readonly refusedLog?: "off" | "on" | undefined;
    /** Absent: tokens are trusted. */
    readonly verify?: VerifyToken | undefined;
    /**
     * What happens to a raise that could not be verified: refused (closed, the default) or accepted
     * (open).
     */
    readonly verifyUnreachable?: "refuse" | "accept" | undefined;
    /** Where the state of the database is remembered outside of it; absent: not at all. */
    readonly memory?: StoreMemory | undefined;
    /** For metrics and logs; must not throw. */
    readonly observe?: ((event: StoreEvent) => void) | undefined;
  };
