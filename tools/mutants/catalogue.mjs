// All mutants there are, in the order in which a full run tries them. A mutant leaves this list
// only with the code it is about, never because it survives.
import { commands } from "./cli/commands.mjs";
import { retries } from "./client/retries.mjs";
import { cells } from "./gateway/cells.mjs";
import { fencedTransactions } from "./gateway/fenced-transactions.mjs";
import { folds } from "./gateway/folds.mjs";
import { outcomes } from "./gateway/outcomes.mjs";
import { ownTables } from "./gateway/own-tables.mjs";
import { page } from "./gateway/page.mjs";
import { requests } from "./gateway/requests.mjs";
import { statement } from "./gateway/statement.mjs";
import { trust } from "./gateway/trust.mjs";
import { waits } from "./gateway/waits.mjs";
import { connections } from "./lock/connections.mjs";
import { fleets } from "./lock/fleets.mjs";
import { floors } from "./lock/floors.mjs";
import { leases } from "./lock/leases.mjs";
import { members } from "./lock/members.mjs";
import { nodes } from "./lock/nodes.mjs";
import { scripts } from "./lock/scripts.mjs";
import { votes } from "./lock/votes.mjs";
import { waiting } from "./lock/waiting.mjs";

/** @type {readonly import("./mutant.mjs").Mutant[]} */
export const catalogue = [
  ...statement,
  ...folds,
  ...outcomes,
  ...requests,
  ...trust,
  ...ownTables,
  ...fencedTransactions,
  ...waits,
  ...page,
  ...retries,
  ...commands,
  ...votes,
  ...leases,
  ...waiting,
  ...connections,
  ...nodes,
  ...members,
  ...fleets,
  ...scripts,
  ...floors,
  ...cells,
];
