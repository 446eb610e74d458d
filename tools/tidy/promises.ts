// Every promise of spec/invariants.md is kept by a test whose title starts with its id. What is not
// proven yet is listed there as pending, and that list can only shrink: as soon as a test names a
// pending id, the id has to leave the list.
import type { Checkout, SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";
import { testCalls } from "./syntax.js";

const SPECIFICATION = "spec/invariants.md";

export const promisesAreTested: Rule = {
  name: "every promise is named by a test or listed as pending, never both",
  findings: (checkout) => {
    const spec = checkout.file(SPECIFICATION);
    return spec === undefined
      ? [`${SPECIFICATION}:1: missing`]
      : [...unkept(checkout, spec), ...unchecked(spec), ...unknown(checkout, spec)];
  },
};

function unkept(checkout: Checkout, spec: SourceFile): readonly Finding[] {
  const named = new Set(titleIds(checkout).map(({ id }) => id));
  const waiting = pending(spec);
  return [...new Set([...promised(spec), ...waiting])].flatMap((id) => {
    if (!promised(spec).includes(id)) return [`${SPECIFICATION}:1: ${id} is pending but not a promise`];
    if (named.has(id) && waiting.includes(id)) return [`${SPECIFICATION}:1: ${id} is still listed as pending although a test names it`];
    return named.has(id) || waiting.includes(id) ? [] : [`${SPECIFICATION}:1: no test title starts with ${id}`];
  });
}

/** Each promise says by what it is checked. */
function unchecked(spec: SourceFile): readonly Finding[] {
  const chapters = spec.text.split(/^## /m).filter((chapter) => /^[A-Z]\d/.test(chapter));
  return chapters.flatMap((chapter) =>
    /^\*\*Checked by\*\* \S/m.test(chapter) ? [] : [`${SPECIFICATION}:1: ${chapter.slice(0, 2)} does not say what checks it`],
  );
}

function unknown(checkout: Checkout, spec: SourceFile): readonly Finding[] {
  return titleIds(checkout).flatMap(({ id, where }) =>
    promised(spec).includes(id) ? [] : [`${where}: ${id} is not a promise of ${SPECIFICATION}`],
  );
}

function promised(spec: SourceFile): readonly string[] {
  return [...spec.text.matchAll(/^## ([A-Z]\d) /gm)].map((match) => match[1] ?? "");
}

function pending(spec: SourceFile): readonly string[] {
  const [, list = ""] = spec.text.split(/^## Pending$/m);
  return [...list.matchAll(/^- ([A-Z]\d)\b/gm)].map((match) => match[1] ?? "");
}

function titleIds(checkout: Checkout): readonly { readonly id: string; readonly where: string }[] {
  return checkout.code
    .filter((file) => file.isTest)
    .flatMap((file) =>
      [...testCalls(file.program)].flatMap(({ call, title }) => {
        const [, id] = /^([A-Z]\d) /.exec(title ?? "") ?? [];
        return id === undefined ? [] : [{ id, where: file.at(call.start) }];
      }),
    );
}
