// Dependencies are written as exact versions: a range is a version nobody has tested. Peer ranges
// are a promise to users and stay out of this rule.
import type { SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";

const sections = ["dependencies", "devDependencies", "optionalDependencies"] as const;
const EXACT = /^(workspace:\*|(npm:(@[^/]+\/)?[^@]+@)?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?)$/;

export const exactVersions: Rule = {
  name: "every dependency has an exact version",
  findings: (checkout) => checkout.files.filter((file) => /(^|\/)package\.json$/.test(file.path)).flatMap(ranges),
};

function ranges(file: SourceFile): readonly Finding[] {
  const manifest = JSON.parse(file.text) as Partial<Record<(typeof sections)[number], Record<string, string>>>;
  return sections.flatMap((section) =>
    Object.entries(manifest[section] ?? {}).flatMap(([name, version]) =>
      EXACT.test(version) ? [] : [`${file.at(file.text.indexOf(`"${name}"`))}: ${name} is ${version}, not one version`],
    ),
  );
}
