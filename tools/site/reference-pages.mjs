// docs/settings.md and docs/errors.md, made of what is said elsewhere: the gateway's table of
// settings, its problems, the wire format, and the tables of the lock and the guard.

/** @typedef {import("../../packages/gateway/src/settings/settings.js").Setting} Setting */
/** @typedef {{ readonly code: string, readonly status: number, readonly title: string }} ProblemLine */

const MADE = "<!-- Made by `npm run site -- --pages`; a test holds it against its sources. -->";

/** @param {Readonly<Record<string, Setting>>} settings @returns {string} */
export function settingsPage(settings) {
  const rows = Object.entries(settings).map(([name, { env, mustBe, help, fallback }]) => {
    const value = fallback === undefined ? "" : `\`${String(fallback)}\``;
    return `| \`${env}\`<br>\`${name}\` | ${value} | ${help} Must be ${escaped(mustBe)}. |`;
  });
  return `# Settings of the gateway

${MADE}

The program reads them from its environment; \`createGateway\` takes the same as options, under the name in the second
line. Only \`DATABASE_URL\` has to be there. A wrong value stops the start with a sentence that names the variable; so
does a name that looks like a misspelling of one of these. \`npx @palisade/gateway --check-config\` says whether they are
understood.

| variable, option | default | meaning |
| --- | --- | --- |
${rows.join("\n")}

The options of the lock stand in [its README](../packages/lock/README.md#how-do-i-run-it-in-production).
`;
}

/**
 * @param {{ problems: readonly ProblemLine[], wire: string, lock: string, client: string, ownTables: string }} sources the
 * problems of the gateway, and the texts of spec/wire.md, the lock's README, the client's
 * results.ts and docs/own-tables.md
 * @returns {string}
 */
export function errorsPage({ problems, wire, lock, client, ownTables }) {
  const remedies = remediesIn(wire);
  const lines = problems.map(({ code, status, title }) => `| ${status} | \`${code}\` | ${title} | ${remedies.get(code) ?? ""} |`);
  return `# Errors

${MADE}

Codes are for programs and do not change their meaning; messages are for people.

## Of the gateway

\`application/problem+json\` with \`code\`, \`detail\`, \`requestId\` and what can be acted on; the client answers
\`{ ok: false, code, outcome, … }\`. More in [the wire format](../spec/wire.md#problems).

| status | code | means | what to do |
| --- | --- | --- | --- |
${lines.join("\n")}

## Of the client itself

| code | means |
| --- | --- |
${localCodes(client)}

## Of the lock

\`LockError.code\`:

${tableAt(lock, "| error code |")}

\`LockError.reason\` of \`LEASE_LOST\`:

${tableAt(lock, "| `LockError.reason` of `LEASE_LOST` |")}

## Of the guard in Postgres

${tableAt(ownTables, "| SQLSTATE |")}

What \`withFencedTransaction\` throws stands in [the guard through your driver](drivers.md#a-transaction-under-a-lease).
`;
}

/** Which code has which remedy in the table of problems. @param {string} wire */
function remediesIn(wire) {
  const rows = tableAt(wire, "| status").split("\n").slice(2);
  return new Map(
    rows.flatMap((row) => {
      const [, , codes = "", remedy = ""] = row.split("|").map((cell) => cell.replaceAll("**", "").trim());
      return [...codes.matchAll(/`(\w+)`/g)].map(([, code = ""]) => /** @type {const} */ ([code, remedy]));
    }),
  );
}

/** The comment of LocalCode: "`code`: what it means." @param {string} source */
function localCodes(source) {
  const [, comment = ""] = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*export type LocalCode/.exec(source) ?? [];
  const text = comment.replaceAll(/\s*\n\s*\*\s?/g, " ");
  return [...text.matchAll(/`(\w+)`: ([^`]+)\./g)].map(([, code, meaning]) => `| \`${code}\` | ${meaning} |`).join("\n");
}

/** The whole table whose first line begins so, without padding. @param {string} text @param {string} start */
function tableAt(text, start) {
  const from = text.indexOf(`\n${start}`);
  if (from === -1) throw new Error(`there is no table that begins with ${start}`);
  const table = text.slice(from + 1).split(/\n(?!\|)/)[0] ?? "";
  return table.replaceAll(/ {2,}/g, " ").replaceAll(/-{4,}/g, "---");
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll("|", "\\|");
}
