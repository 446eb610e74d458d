// Reads the output of npm or pnpm and decides whether the registry could not be reached; if so, says it in one sentence instead of a page.
import { Refusal } from "./refusal.mjs";

const signs =
  /\b(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ERR_SOCKET_TIMEOUT|UND_ERR_CONNECT_TIMEOUT|ERR_PNPM_META_FETCH_FAIL|FETCH_ERROR)\b/;

/**
 * @param {string} what
 * @param {string} output
 * @returns {Refusal | undefined}
 */
export function unreachable(what, output) {
  const [sign] = signs.exec(output) ?? [];
  if (sign === undefined) return undefined;
  const [address] = /https?:\/\/[^\s/:]+(:\d+)?/.exec(output) ?? ["the package registry"];
  return new Refusal(
    `${what} could not be fetched: ${address} did not answer (${sign}). Check the network, or npm's "registry" and "proxy" settings, and run this again.`,
  );
}
