// Nothing unfinished and nothing of one machine is committed: no marks of work left over, no
// absolute paths into a home or build folder.
import type { SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";

const marks = new RegExp(`\\b(${["TO", "FIX", "XX"].map((start, index) => start + ["DO", "ME", "X"][index]).join("|")})\\b`, "g");
const PATHS = /(?<![\w.~$}/])\/(home\/[\w.-]+|Users\/[\w.-]+|root|work)\/[\w.-]+/g;

export const nothingLeftOver: Rule = {
  name: "no mark of unfinished work is left in the tree",
  findings: (checkout) => checkout.files.flatMap((file) => occurrences(file, marks)),
};

export const noMachinePaths: Rule = {
  name: "no absolute path of one machine is written down",
  findings: (checkout) => checkout.files.flatMap((file) => occurrences(file, PATHS)),
};

function occurrences(file: SourceFile, pattern: RegExp): readonly Finding[] {
  return [...file.text.matchAll(pattern)].map((match) => `${file.at(match.index)}: ${match[0]}`);
}

// A file URL becomes a path by fileURLToPath. Its `pathname` is still encoded, and so is no path at
// all in a folder with a space in its name.
const RAW = /\bimport\.meta\.url\)\.pathname/g;

export const fileUrls: Rule = {
  name: "no path is cut out of a file URL",
  findings: (checkout) =>
    checkout.code.flatMap((file) => [...file.text.matchAll(RAW)].map((match) => `${file.at(match.index)}: use fileURLToPath`)),
};
