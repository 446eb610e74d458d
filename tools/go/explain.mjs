// Finds the reason of a failure in the output of npm, pnpm or tsc, and says it in one sentence
// instead of a page: a full disk, or a registry that does not answer or does not have it.
import { existsSync, statfsSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { root } from "./checkout.mjs";
import { Refusal } from "./refusal.mjs";

const NO_ANSWER =
  /\b(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ERR_SOCKET_TIMEOUT|UND_ERR_CONNECT_TIMEOUT|ERR_PNPM_META_FETCH_FAIL|FETCH_ERROR)\b/;
const REFUSED = /\b(?:E|ERR_PNPM_FETCH_)(401|403|404)\b/;
const ALMOST_NOTHING_BYTES = 65_536;
const NO_SPACE = /(ENOSPC|EDQUOT)\b/;

/**
 * @param {string} what "the dependencies", …
 * @param {string} output
 * @returns {Refusal | undefined}
 */
export function explained(what, output) {
  const full = diskFull(output);
  if (full !== undefined) return full;
  const [address = "the package registry"] = /https?:\/\/[^\s/:]+(:\d+)?/.exec(output) ?? [];
  const advice = `Check the network, or npm's "registry" and "proxy" settings, and run this again.`;
  const [sign] = NO_ANSWER.exec(output) ?? [];
  if (sign !== undefined) return new Refusal(`${what} could not be fetched: ${address} did not answer (${sign}). ${advice}`);
  const [, status] = REFUSED.exec(output) ?? [];
  const [url = address] = /https?:\/\/\S+[^\s:.]/.exec(output) ?? [];
  if (status !== undefined) return new Refusal(`${what} could not be fetched: ${url} was answered with ${status}. ${advice}`);
  // npm cannot always write its reason either.
  return [root, homedir(), tmpdir()].some(isFull) ? diskFull("ENOSPC") : undefined;
}

/** @param {string} folder */
function isFull(folder) {
  const { blocks, bavail, bsize } = statfsSync(existsSync(folder) ? folder : root);
  return blocks > 0 && bavail * bsize < ALMOST_NOTHING_BYTES;
}

/** @param {string} text an output, or the code of an error @returns {Refusal | undefined} */
export function diskFull(text) {
  const [, sign] = NO_SPACE.exec(text) ?? [];
  if (sign === undefined) return undefined;
  return new Refusal(
    `there is no space left on a disk that is needed (${sign}): that of ${root}, of HOME or of TMPDIR. Free some and run this again.`,
  );
}
