// A file is named after its one idea, in kebab case. Names that say only "something is in here" are refused.
import { posix } from "node:path";
import type { Rule } from "./rule.js";

const empty = /(^|[-.])(utils?|helpers?|common|misc)([-.]|$)/;
/** In the name of a test these say what is tested; in the name of a source file they say only what kind of declaration is in it. */
const kinds = /(^|[-.])(types|constants|interfaces)([-.]|$)/;
/** Migrations are numbered. */
const migration = /^\d{4}_[a-z0-9]+(_[a-z0-9]+)*\.sql$/;
const kebab = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*$/;

export const fileNames: Rule = {
  name: "every file is named in kebab case after what it is about",
  findings: (checkout) =>
    checkout.files.flatMap(({ path }) => {
      if (!/^(packages\/[^/]+\/(src|test)|tools)\/.*\.(ts|mjs|lua|sql)$/.test(path)) return [];
      const name = posix.basename(path);
      if (migration.test(name)) return [];
      if (!kebab.test(name)) return [`${path}:1: not in kebab case`];
      const stem = name.replace(/\.[a-z]+$/, "");
      const says = !empty.test(stem) && (stem.endsWith(".test") || !kinds.test(stem));
      return says ? [] : [`${path}:1: the name does not say what is in it`];
    }),
};
