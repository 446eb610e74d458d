// The folders of a package's source in the order in which they build on each other. A file imports
// only from its own folder and from those before it; imports of types count, because a reader
// follows them too.
import type { Checkout, SourceFile } from "./checkout.js";
import { importsOf } from "./imports.js";
import type { Finding, Rule } from "./rule.js";

const inOrder = (text: string): readonly string[] => text.trim().split(/\s+/);

/** By package: its folders, lowest first, and then the files in the root of its source. */
const layersOf: Readonly<Record<string, readonly string[]>> = {
  lock: inOrder(`
    platform/ protocol/ quorum/ options/ lease/ waiting/ redis/ routine-calls.ts locker.ts fleets/ open-locker.ts
    testing/ metrics/ tracing/ index.ts
  `),
  client: inOrder(`
    misuse.ts results.ts request-format.ts options.ts transaction-body.ts json-patch-body.ts
    transport.ts spans.ts retry.ts gateway-error.ts change-stream.ts client-options.ts gateway-client.ts
    with-resource.ts tracing.ts index.ts
  `),
  guard: inOrder(`
    token.ts checks.ts server-error.ts statement.ts lost-connection.ts transaction-source.ts guard.ts fenced-transaction.ts
    fenced-tables.ts doctor.ts index.ts for-gateway.ts
  `),
  cli: inOrder("text.ts report.ts failure.ts settings.ts context.ts commands/ command-list.ts usage.ts run.ts main.ts"),
  gateway: inOrder(`
    version.generated.ts fence/ store/ guard/ fenced-store.ts store-config.ts postgres-store.ts observe/
    http/ page/ settings/ app.ts migrate-at-start.ts verify-with-lock.ts recover.ts gateway.ts
    commands.ts fence-commands.ts main.ts index.ts
  `),
  testkit: inOrder("process/ proxy/ resolve/ clock/ redis/ postgres/ docker/ servers/ vitest/ index.ts"),
  bench: inOrder("measure/ lock/ gateway/ page/ command-line.ts main.ts"),
  robustness: inOrder("history/ traffic/ harness/ servers/ checkers/ faults/ report/ profiles/ main.ts soak.ts"),
  "demo-client": inOrder("output/ program.ts worker/ engine/ scenarios/ command-line.ts main.ts"),
  dev: inOrder("command-line.ts stack.ts main.ts"),
};

export const layers: Rule = {
  name: "a folder imports only from the layers below it, types included",
  findings: (checkout) => Object.keys(layersOf).flatMap((name) => judgePackage(checkout, name)),
};

function judgePackage(checkout: Checkout, name: string): readonly Finding[] {
  const source = `packages/${name}/src/`;
  const order = layersOf[name] ?? [];
  const layerOf = (path: string): number => {
    const inside = path.slice(source.length);
    return order.findIndex((layer) => inside === layer || (layer.endsWith("/") && inside.startsWith(layer)));
  };
  const judge = (file: SourceFile): readonly Finding[] => {
    const own = layerOf(file.path);
    if (own < 0) return [`${file.path}:1: in none of the layers ${order.join(" ")}`];
    return importsOf(file).flatMap(({ specifier, target, offset }) =>
      target?.startsWith(source) && layerOf(target) > own ? [`${file.at(offset)}: ${specifier} is in a layer above`] : [],
    );
  };
  return checkout
    .sourcesOf(name)
    .filter(({ isCode }) => isCode)
    .flatMap(judge);
}
