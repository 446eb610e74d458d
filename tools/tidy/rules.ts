// The rules that no linter knows; those that Biome has are in biome.json.
import { clockOnly } from "./clock-only.js";
import { commentWidth, openingComments } from "./comments.js";
import { importDirections } from "./directions.js";
import { documentedExports } from "./documentation.js";
import { decisionForm, proseWidth } from "./documents.js";
import { oneEntry } from "./entries.js";
import { honestTests } from "./honest-tests.js";
import { layers } from "./layers.js";
import { fileUrls, noMachinePaths, nothingLeftOver } from "./leftovers.js";
import { promisesAreTested } from "./promises.js";
import { documentsPointSomewhere } from "./references.js";
import type { Rule } from "./rule.js";
import { fileLength, testLength } from "./sizes.js";
import { testedVersions } from "./tested-versions.js";
import { knownWords, meaningfulNames } from "./vocabulary.js";

export const rules: readonly Rule[] = [
  fileLength,
  testLength,
  meaningfulNames,
  knownWords,
  importDirections,
  layers,
  clockOnly,
  oneEntry,
  openingComments,
  commentWidth,
  documentedExports,
  honestTests,
  fileUrls,
  nothingLeftOver,
  noMachinePaths,
  testedVersions,
  promisesAreTested,
  documentsPointSomewhere,
  proseWidth,
  decisionForm,
];
