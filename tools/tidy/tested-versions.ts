// What this workspace runs has exact versions: a range is a version nobody has tested. What a
// published package or an example needs is a range of what was tested, so that a user gets a fix of
// a dependency without waiting for a release of ours.
import type { SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";

const EXACT = /^(workspace:\*|(npm:(@[^/]+\/)?[^@]+@)?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?)$/;
/** A prerelease is exact here too: a range of one takes any later prerelease. */
const RANGE = /^(workspace:\^|\^\d+\.\d+\.\d+|\d+\.\d+\.\d+-[0-9A-Za-z.-]+)$/;

interface Manifest extends Partial<Record<string, Record<string, string> | boolean>> {
  readonly private?: boolean;
}

export const testedVersions: Rule = {
  name: "dependencies have exact versions, those of published packages and examples caret ranges",
  findings: (checkout) => checkout.files.filter((file) => /(^|\/)package\.json$/.test(file.path)).flatMap(unfit),
};

function unfit(file: SourceFile): readonly Finding[] {
  const manifest = JSON.parse(file.text) as Manifest;
  const isExample = file.path.startsWith("examples/");
  const isPublished = isExample || (file.path.startsWith("packages/") && manifest.private !== true);
  const judge = (section: string, allowed: RegExp): readonly Finding[] =>
    Object.entries((manifest[section] ?? {}) as Record<string, string>).flatMap(([name, version]) =>
      allowed.test(version)
        ? []
        : [`${file.at(file.text.indexOf(`"${name}"`))}: ${name} is ${version}, not ${allowed === EXACT ? "one version" : "a caret range"}`],
    );
  return [
    ...judge("dependencies", isPublished ? RANGE : EXACT),
    ...judge("optionalDependencies", isPublished ? RANGE : EXACT),
    ...judge("devDependencies", isExample ? RANGE : EXACT),
  ];
}
