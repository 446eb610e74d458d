// CHANGELOG.md as a release needs it: what was not released yet gets a version and a day.

const UNRELEASED = "## Unreleased";

/** What a version says of itself. @param {string} text of CHANGELOG.md @param {string} version */
export function sectionOf(text, version) {
  const [, body = ""] = text.split(new RegExp(`^## ${version.replaceAll(".", "\\.")} .*$`, "m"));
  return body.split(/^## /m)[0]?.trim() ?? "";
}

/** @param {string} text @param {{ version: string, day: string }} release */
export function released(text, { version, day }) {
  const body = text.split(`${UNRELEASED}\n`)[1]?.split(/^## /m)[0]?.trim() ?? "";
  if (body === "") throw new RangeError(`CHANGELOG.md says nothing under "${UNRELEASED}": there is nothing to release`);
  return text.replace(`${UNRELEASED}\n`, `${UNRELEASED}\n\n## ${version} (${day})\n`);
}
