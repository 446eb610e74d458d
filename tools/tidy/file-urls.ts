// A file URL becomes a path by fileURLToPath. Its `pathname` is still encoded, and so is no path at
// all in a folder with a space in its name.
import type { Rule } from "./rule.js";

const RAW = /\bimport\.meta\.url\)\.pathname/g;

export const fileUrls: Rule = {
  name: "no path is cut out of a file URL",
  findings: (checkout) =>
    checkout.code.flatMap((file) => [...file.text.matchAll(RAW)].map((match) => `${file.at(match.index)}: use fileURLToPath`)),
};
