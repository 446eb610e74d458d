// Reads the output of npm or pnpm and decides whether the registry is the reason of a failure; if
// so, says it in one sentence instead of a page.
import { Refusal } from "./refusal.mjs";

const silence =
  /\b(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ERR_SOCKET_TIMEOUT|UND_ERR_CONNECT_TIMEOUT|ERR_PNPM_META_FETCH_FAIL|FETCH_ERROR)\b/;
const refusal = /\b(?:E|ERR_PNPM_FETCH_)(401|403|404)\b/;

/**
 * @param {string} what
 * @param {string} output
 * @returns {Refusal | undefined}
 */
export function unreachable(what, output) {
  const [address = "the package registry"] = /https?:\/\/[^\s/:]+(:\d+)?/.exec(output) ?? [];
  const advice = `Check the network, or npm's "registry" and "proxy" settings, and run this again.`;
  const [sign] = silence.exec(output) ?? [];
  if (sign !== undefined) return new Refusal(`${what} could not be fetched: ${address} did not answer (${sign}). ${advice}`);
  const [, status] = refusal.exec(output) ?? [];
  const [url = address] = /https?:\/\/\S+[^\s:.]/.exec(output) ?? [];
  return status === undefined ? undefined : new Refusal(`${what} could not be fetched: ${url} was answered with ${status}. ${advice}`);
}
