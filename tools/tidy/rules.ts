// The list of all rules. Decides nothing else.
import { clockOnly } from "./clock-only.js";
import { noCycles } from "./cycles.js";
import { importDirections } from "./directions.js";
import { oneEntry } from "./entries.js";
import { exactVersions } from "./exact-versions.js";
import { fileUrls } from "./file-urls.js";
import { honestTests } from "./honest-tests.js";
import { layers } from "./layers.js";
import { noMachinePaths, nothingLeftOver } from "./leftovers.js";
import { fileNames } from "./names.js";
import { openingComments } from "./openings.js";
import { promisesAreTested } from "./promises.js";
import { documentsPointSomewhere } from "./references.js";
import type { Rule } from "./rule.js";
import { fileLength, functionLength, parameterCount } from "./sizes.js";

export const rules: readonly Rule[] = [
  fileLength,
  functionLength,
  parameterCount,
  fileNames,
  importDirections,
  layers,
  noCycles,
  clockOnly,
  oneEntry,
  openingComments,
  honestTests,
  fileUrls,
  nothingLeftOver,
  noMachinePaths,
  exactVersions,
  promisesAreTested,
  documentsPointSomewhere,
];
