// What `work` gets: its transaction, for as long as it runs. pg knows no transactions, only
// connections, and drizzle asks pg: what they are sent after the end goes out of any transaction, or
// into the next one on that connection, under the guard of another resource. So a statement that
// comes late is refused here, for every library alike, before it reaches the library.
import { has } from "./statement.js";

type Method = (...args: readonly unknown[]) => unknown;

/** Methods that send at once, and answer with a promise. */
const sending: ReadonlySet<PropertyKey> = new Set(["query", "execute", "raw", "$executeRawUnsafe", "$queryRawUnsafe"]);
const ofPromises = ["then", "catch", "finally"] as const;

/** The transaction, and its end, after which each of its methods refuses with `late`. */
export function lend<Tx extends object>(tx: Tx, late: () => Error): { readonly lent: Tx; end(): void } {
  // What drizzle builds keeps the connection, and is sent once it is awaited: all that its
  // transaction hands out ends with it. The other libraries know that theirs is over.
  const isDeep = has(tx, "execute");
  let isOver = false;

  const borrowed = <T extends object>(target: T, name: PropertyKey = "", self?: object): T =>
    new Proxy(target, {
      get(_, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (key === "constructor" || isFixed(target, key)) return value;
        if (typeof value === "function") return borrowed(value, key, target);
        return isDeep ? lentOn(value) : value;
      },
      apply(_, __, args: readonly unknown[]) {
        if (isOver) return refused(late(), name, args);
        const result: unknown = Reflect.apply(target as unknown as Method, self, isDeep ? args.map(withLent) : args);
        return isDeep ? lentOn(result) : result;
      },
    });
  const lentOn = (value: unknown): unknown =>
    typeof value === "object" && value !== null && !(value instanceof Promise) ? borrowed(value) : value;
  /** The work of a transaction inside of this one is lent that one, too. */
  const withLent = (value: unknown): unknown => {
    if (typeof value !== "function") return value;
    return (...args: readonly unknown[]) => value(...args.map((arg) => (has(arg, "execute") ? lentOn(arg) : arg)));
  };

  return {
    lent: borrowed(tx),
    end: () => {
      isOver = true;
    },
  };
}

/** A proxy has to show such a property as it is. */
function isFixed(target: object, key: PropertyKey): boolean {
  const property = Reflect.getOwnPropertyDescriptor(target, key);
  return property?.configurable === false && property.writable === false;
}

/** Whether it is sent by a call, or built by several and then awaited: what comes of it is the error. */
function refused(error: Error, name: PropertyKey, args: readonly unknown[]): unknown {
  if (sending.has(name)) return Promise.reject(error);
  const method = ofPromises.find((one) => one === name);
  if (method !== undefined) return Reflect.apply(Promise.prototype[method], Promise.reject(error), args);
  return new Proxy(
    {},
    {
      get:
        (_, next) =>
        (...more: readonly unknown[]) =>
          refused(error, next, more),
    },
  );
}
