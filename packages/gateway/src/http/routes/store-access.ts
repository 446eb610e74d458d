// How a route reaches the store: through an object, because the routes exist before the store is open.
import type { FencedStore } from "../../fenced-store.js";

export interface StoreAccess {
  readonly store: FencedStore;
}
