// A run as one page that needs nothing else: the verdict, the figures, the whole run in a picture, and the moments around what was found, from near. Pure.

import type { Violation } from "../../../history/lease-record.js";
import { whole } from "../../../report/table.js";
import type { Asked } from "../arguments.js";
import { type Figures, figuresOf, savedUpdates } from "../figures.js";
import type { Outcome } from "../run.js";
import { repeat, verdict } from "../text-report.js";
import { closeUp, type Moment } from "./close-up.js";
import { escaped } from "./markup.js";
import { style } from "./style.js";
import { wholeRun } from "./whole-run.js";

const CLOSE_UPS = 8;

export function page(asked: Asked, outcome: Outcome): string {
  const figures = figuresOf(outcome);
  const isBroken = outcome.violations.length > 0;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Palisade fault run ${escaped(asked.seed)}</title><style>${style}</style></head><body>
<h1>Palisade fault run <code>${escaped(asked.seed)}</code></h1>
<p class="soft">${escaped(outcome.servers)}</p>
<p class="verdict${isBroken ? " broken" : ""}">${escaped(verdict(outcome.violations))}</p>
${cards(figures)}
<h2>The whole run</h2>
<figure>${wholeRun(outcome)}</figure>
${legend([
  ["good", "write stored"],
  ["bad", "write refused as stale"],
  ["silence", "nothing stored for half a second or more"],
])}
${isBroken ? found(outcome) : saved(outcome)}
<h2>In numbers</h2>
<div class="columns">${kinds(figures)}${counts("fault", figures.faults)}${counts("ambush", Object.entries(outcome.traps))}${counts("refused with", figures.refusals)}${counts("the lock said no", figures.unlocked)}${counts("left out, because enough was broken", Object.entries(outcome.leftOut))}</div>
<h2>To repeat</h2>
<p><code>${escaped(repeat(asked))}</code></p>
<p class="soft">The faults are drawn from the seed. Where they fall is decided by how fast processes and networks are on that day.</p>
</body></html>
`;
}

function cards({ operations, leases, seconds, savedUpdates: saved, longestSilenceMs, faults }: Figures): string {
  const made = faults.reduce((sum, [, count]) => sum + count, 0);
  const facts = [
    [whole(operations), "operations"],
    [whole(leases), "leases"],
    [whole(made), "faults"],
    [`${seconds.toFixed(0)} s`, "under fire"],
    [whole(saved), "refusals that saved an update"],
    [`${(longestSilenceMs / 1_000).toFixed(1)} s`, "longest time without a stored write"],
  ];
  return `<div class="cards">${facts.map(([fact, name]) => `<div class="card"><b>${fact}</b><span>${name}</span></div>`).join("")}</div>`;
}

function found(outcome: Outcome): string {
  const { violations } = outcome;
  const seen = violations.slice(0, CLOSE_UPS).map((violation) => {
    const moment = momentOf(violation);
    const figure = moment === undefined ? "" : `<figure>${closeUp(outcome, moment)}</figure>`;
    return `<h2>${violation.promise}</h2><p>${escaped(violation.what)}</p>${figure}`;
  });
  const more = violations.length - seen.length;
  return `${seen.join("\n")}${callLegend}${more > 0 ? `<p class="soft">and ${more} more</p>` : ""}`;
}

function momentOf({ at, resource }: Violation): Moment | undefined {
  if (at === undefined || resource === undefined || !Number.isFinite(at)) return undefined;
  return { resource, at, span: { fromAt: at - 300, untilAt: at + 300 } };
}

/** Nothing was found, so here is what would have been without the fence. */
function saved(outcome: Outcome): string {
  const refusals = savedUpdates(outcome.history);
  const refusal = refusals[Math.floor(refusals.length / 2)];
  if (refusal === undefined) return "";
  const lease = outcome.history.tenures.find(({ resource, token }) => resource === refusal.resource && token === refusal.token);
  const { resource, sentAt: at, answeredAt, token, on } = refusal;
  const moment: Moment = { resource, at, span: { fromAt: Math.max(lease?.grantedAt ?? at, at - 1_500), untilAt: answeredAt } };
  return `<h2>One of the ${whole(refusals.length)} refusals that saved an update</h2>
<p>${escaped(`${refusal.author} had read revision ${on?.rev} of ${resource} under token ${token}. When it wrote, at the dashed line, a newer token was there, and the next revision became somebody else's. It was told that it is stale.`)}</p>
<figure>${closeUp(outcome, moment)}</figure>${callLegend}`;
}

const callLegend = legend([
  ["lease", "lease, with the last digits of its token"],
  ["look", "seal or read"],
  ["good", "write stored"],
  ["bad", "refused"],
  ["doubt", "unknown"],
  ["soft", "did not run"],
]);

function legend(entries: readonly (readonly [string, string])[]): string {
  return `<ul class="legend">${entries.map(([colour, name]) => `<li><i style="background: var(--${colour})"></i>${name}</li>`).join("")}</ul>`;
}

function kinds({ kinds: all }: Figures): string {
  const lines = all.map(({ kind, done, refused, unknown }) => row([kind, whole(done), whole(refused), whole(unknown)]));
  return `<table><thead><tr><th>operation</th><th>done</th><th>refused</th><th>unknown</th></tr></thead><tbody>${lines.join("")}</tbody></table>`;
}

function counts(title: string, all: readonly (readonly [string, number])[]): string {
  if (all.length === 0) return "";
  const lines = all.map(([name, count]) => row([name, whole(count)]));
  return `<table><thead><tr><th>${title}</th><th></th></tr></thead><tbody>${lines.join("")}</tbody></table>`;
}

function row(cells: readonly string[]): string {
  return `<tr>${cells.map((cell) => `<td>${escaped(cell)}</td>`).join("")}</tr>`;
}
