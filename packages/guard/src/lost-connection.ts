// A transaction of postgres.js 3.4 outlives its connection: what it is sent after the loss goes to
// the next connection of the pool, outside of this transaction and perhaps inside of another one,
// and throws outside of any promise while there is none. A query is made long before it is sent. So
// each is looked at when it is sent, by whichever handle of the transaction it was made.
import { serverErrorOf } from "./server-error.js";
import { has } from "./statement.js";

/** What postgres.js makes of a statement. Its fields are those of 3.4. */
interface Query {
  /** Called with the query when it is to be sent. */
  handler: (query: Query) => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
  /** Takes rows; the next are asked for when it is done. */
  cursorFn?: ((rows: unknown) => unknown) | undefined;
  strings: readonly string[];
  catch(handle: () => void): unknown;
}
type AnyFunction = (...args: unknown[]) => unknown;
/** The `sql` of a transaction or a savepoint. */
interface Handle {
  unsafe(text: string): Query;
  savepoint(...args: unknown[]): Promise<unknown>;
}

/** Whether a connection of one transaction was lost, and what that ends. */
export class LostConnection {
  readonly #unanswered = new Set<Query>();
  #known: { readonly error: unknown } | undefined;
  #tell: (error: unknown) => void = () => undefined;
  readonly #told = new Promise<never>((_, reject) => {
    this.#tell = reject;
  });

  constructor() {
    this.#told.catch(() => undefined);
  }

  /** Nothing is sent from now on, and no query is left without an answer. The first error stays. */
  give(error: unknown): void {
    if (this.#known !== undefined) return;
    this.#known = { error };
    for (const query of [...this.#unanswered]) query.reject(error);
    this.#tell(error);
  }

  /**
   * What postgres.js or drizzle has opened, seen through this. Of another library it is as it was.
   */
  watch<Tx extends object>(tx: Tx): Tx {
    if (isHandle(tx)) return this.#handle(tx);
    // All of drizzle's queries, those of its nested transactions too, are made by its session.
    const { session } = tx as { readonly session?: { client?: unknown } };
    if (session !== undefined && isHandle(session.client)) session.client = this.#handle(session.client);
    return tx;
  }

  /**
   * The end of the work, as the library may hear it: it sends COMMIT or ROLLBACK then, past what is
   * watched here. While nothing is in flight the library is the first to know of a loss, and tells
   * it a few microtasks later.
   */
  async untilKnown<T>(working: Promise<T>): Promise<T> {
    const ended = await working.then(
      (value) => ({ value }),
      async (error: unknown) => {
        await new Promise((resolve) => setImmediate(resolve));
        return { error };
      },
    );
    if (this.#known !== undefined) return await new Promise<never>(() => undefined);
    if ("error" in ended) throw ended.error;
    return ended.value;
  }

  #handle<H extends Handle & object>(handle: H): H {
    const { handler: send } = handle.unsafe("");
    return new Proxy(handle, {
      apply: (target, self, args) => this.#watchQuery(Reflect.apply(target as unknown as AnyFunction, self, args)),
      get: (target, key) => {
        const value = Reflect.get(target, key) as unknown;
        if (typeof value !== "function") return value;
        const call = value as AnyFunction;
        if (key === "unsafe") return (...args: unknown[]) => this.#watchQuery(call(...args));
        if (key === "file") return (...args: unknown[]) => this.#watchQuery(this.#ofFile(call(...args) as Query, args[0] as string, send));
        if (key === "savepoint") return (...args: unknown[]) => this.#savepoint(call, args);
        return value;
      },
    });
  }

  /** Anything but a query, such as the name of a column, stays as it is. */
  #watchQuery(made: unknown): unknown {
    if (!has(made, "handler") || !has(made, "reject")) return made;
    const query = made as unknown as Query;
    const send = query.handler;
    query.handler = Object.assign((sent: Query) => this.#send(sent, send), send);
    let fromCallback: unknown = NONE;
    replace(query, "resolve", (resolve) => (value) => {
      this.#unanswered.delete(query);
      resolve(value);
    });
    replace(query, "reject", (reject) => (error) => {
      this.#unanswered.delete(query);
      if (error !== fromCallback && endsConnection(error)) this.give(error);
      reject(error);
    });
    const thrown = (error: unknown): never => {
      fromCallback = error;
      throw error;
    };
    // postgres.js asks for the next rows, past what is watched here, when it has been answered.
    replace(query, "cursorFn", (take) => (rows) => {
      try {
        return this.untilKnown(Promise.resolve(take?.(rows)).catch(thrown));
      } catch (error) {
        return thrown(error);
      }
    });
    return query;
  }

  #send(query: Query, send: Query["handler"]): unknown {
    // Like postgres.js: a query that nobody waits for does not end the process.
    query.catch(() => undefined);
    if (this.#known !== undefined) return query.reject(this.#known.error);
    this.#unanswered.add(query);
    return send(query);
  }

  /** postgres.js reads the file first, and sends it whatever has happened meanwhile. */
  #ofFile(query: Query, path: string, send: Query["handler"]): Query {
    const { readFile } = process.getBuiltinModule("node:fs").promises;
    query.handler = (asked) =>
      readFile(path, "utf8").then(
        (text) => {
          asked.strings = [text];
          return this.#send(asked, send);
        },
        (error: unknown) => asked.reject(error),
      );
    return query;
  }

  /** postgres.js sends its own SAVEPOINT and ROLLBACK TO, past what is watched here. */
  async #savepoint(savepoint: AnyFunction, args: readonly unknown[]): Promise<unknown> {
    if (this.#known !== undefined) throw this.#known.error;
    const isTagged = has((args[0] as { readonly raw?: unknown } | undefined)?.raw, "map");
    const work = isTagged ? (inner: unknown) => (inner as AnyFunction)(...args) : (args.at(-1) as AnyFunction);
    const inside: { ended?: Promise<unknown>; failure?: { readonly error: unknown } } = {};
    const run = async (inner: object): Promise<unknown> => {
      try {
        const made = work(this.watch(inner));
        return await (Array.isArray(made) ? Promise.all(made) : made);
      } catch (error) {
        inside.failure = { error };
        throw error;
      }
    };
    const told = savepoint(...(isTagged ? [] : args.slice(0, -1)), (inner: object) => {
      inside.ended = run(inner);
      return this.untilKnown(inside.ended);
    });
    try {
      return await Promise.race([told, this.#told]);
    } catch (error) {
      if (error !== inside.failure?.error && endsConnection(error)) this.give(error);
      // The caller of a savepoint waits for its work too, and learns first why that has failed.
      if (this.#known !== undefined) await inside.ended;
      throw error;
    }
  }
}

const NONE = Symbol("none");

/** postgres.js sets some of them anew while a cursor is read. */
function replace<K extends "resolve" | "reject" | "cursorFn">(query: Query, key: K, by: (now: Query[K]) => Query[K]): void {
  let now = query[key];
  Object.defineProperty(query, key, {
    get: () => (now === undefined ? undefined : by(now)),
    set: (next: Query[K]) => {
      now = next;
    },
  });
}

function isHandle(tx: unknown): tx is Handle & object {
  return has(tx, "unsafe") && has(tx, "savepoint");
}

/** Of postgres.js. */
const LOST = /^(CONNECTION_(CLOSED|DESTROYED|ENDED)|CONNECT_TIMEOUT)$/;
const SOCKET_LOST = /^(ECONN(RESET|ABORTED)|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENET(UNREACH|DOWN|RESET)|ENOTCONN|ERR_SSL_\w+)$/;

/** Errors of one statement alone, such as a parameter without a value, have codes as well. */
export function endsConnection(error: unknown): boolean {
  const server = serverErrorOf(error);
  if (server !== undefined) return server.severity === "FATAL" || server.severity === "PANIC";
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" && (LOST.test(code) || SOCKET_LOST.test(code));
}
