// Every source file opens with a comment that says what it decides and what it must not do.
import type { Rule } from "./rule.js";

export const openingComments: Rule = {
  name: "every source file opens with a comment",
  findings: (checkout) =>
    checkout.files.flatMap((file) => {
      if (!/^(packages\/[^/]+\/src|tools)\/.*\.(ts|mjs|lua|sql|c)$/.test(file.path)) return [];
      const [first = "", second = ""] = file.lines;
      const opening = first.startsWith("#!") ? second : first;
      return /^(\/\/|\/\*|--)/.test(opening) ? [] : [`${file.path}:1: does not open with a comment`];
    }),
};
