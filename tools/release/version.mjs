// Which version comes next.

const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/;

/** @param {string} current @param {string} wanted patch, minor, major, or a version above the current one */
export function nextVersion(current, wanted) {
  const [major, minor, patch] = partsOf(current);
  if (wanted === "patch") return `${major}.${minor}.${patch + 1}`;
  if (wanted === "minor") return `${major}.${minor + 1}.0`;
  if (wanted === "major") return `${major + 1}.0.0`;
  if (!VERSION.test(wanted))
    throw new RangeError(`a release is patch, minor, major or a version such as 1.2.3, not ${JSON.stringify(wanted)}`);
  const [before, after] = [partsOf(current), partsOf(wanted)];
  const at = after.findIndex((part, index) => part !== before[index]);
  if (at < 0 || (after[at] ?? 0) < (before[at] ?? 0)) throw new RangeError(`${wanted} is not above ${current}`);
  return wanted;
}

/** @param {string} version @returns {[number, number, number]} */
function partsOf(version) {
  const [, major, minor, patch] = VERSION.exec(version) ?? [];
  if (patch === undefined) throw new RangeError(`${version} is no version`);
  return [Number(major), Number(minor), Number(patch)];
}
