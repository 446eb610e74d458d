// The tables as drizzle sees them, for reads and for the user's own queries. The SQL files in
// migrations/ are what is applied; a test compares the two. Fenced writes have one statement, in
// guard/fenced-statement.ts.
import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  customType,
  index,
  jsonb,
  pgSchema,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";

/**
 * Text compared byte by byte, because prefix lists use the key. drizzle cannot express a collation.
 */
const name = customType<{ data: string }>({ dataType: () => 'text collate "C"' });
/**
 * int8 arrives as text and becomes a number: every such column is checked to stay within 15 digits,
 * or counts something that will.
 */
const count = (column: string) => bigint(column, { mode: "number" });
/** Of a transaction; only Postgres compares it. */
const transactionNumber = customType<{ data: string }>({ dataType: () => "xid8" });
const instant = (column: string) => timestamp(column, { withTimezone: true });

export const palisade = pgSchema("palisade");

export const resources = palisade.table(
  "resources",
  {
    token: count("token").notNull(),
    seq: count("seq").notNull(),
    rev: count("rev").notNull(),
    born: count("born").notNull(),
    expected: count("expected"),
    updatedAt: instant("updated_at").notNull(),
    deleted: boolean("deleted").notNull(),
    resource: name("resource").notNull(),
    op: text("op", { enum: ["put", "patch", "delete", "seal"] }).notNull(),
    holder: text("holder"),
    value: jsonb("value"),
    guardedBy: transactionNumber("guarded_by"),
  },
  (table) => [
    primaryKey({ name: "resources_pkey", columns: [table.resource] }),
    check("resources_token_check", sql`${table.token} between 1 and 999999999999999`),
    check("resources_seq_check", sql`${table.seq} between 0 and 999999999999999`),
    check("resources_rev_check", sql`${table.rev} >= 0`),
    check("resources_deleted_check", sql`${table.deleted} = (${table.value} is null)`),
  ],
);

export const history = palisade.table(
  "history",
  {
    rev: count("rev").notNull(),
    token: count("token").notNull(),
    seq: count("seq").notNull(),
    writtenAt: instant("written_at").notNull(),
    resource: name("resource").notNull(),
    op: text("op", { enum: ["put", "patch", "delete"] }).notNull(),
    holder: text("holder"),
    position: count("position"),
  },
  (table) => [
    primaryKey({ name: "history_pkey", columns: [table.resource, table.rev] }),
    index("history_written_at").on(table.writtenAt),
    uniqueIndex("history_position").on(table.position).where(sql`${table.position} is not null`),
    index("history_unordered").on(table.resource, table.rev).where(sql`${table.position} is null`),
  ],
);

export const changes = palisade.table(
  "changes",
  {
    onlyRow: boolean("only_row").primaryKey().default(true),
    last: count("last").notNull().default(0),
    forgotten: count("forgotten").notNull().default(0),
  },
  (table) => [check("changes_only_row_check", sql`${table.onlyRow}`)],
);

export const usedKeys = palisade.table(
  "used_keys",
  {
    usedAt: instant("used_at").notNull(),
    key: name("key").notNull(),
    fingerprint: text("fingerprint").notNull(),
    outcome: jsonb("outcome").notNull(),
  },
  (table) => [
    primaryKey({ name: "used_keys_pkey", columns: [table.key] }),
    index("used_keys_used_at").on(table.usedAt),
    check("used_keys_key_check", sql`octet_length(${table.key}) between 1 and 512`),
  ],
);

export const fenceChanges = palisade.table("fence_changes", {
  id: count("id").primaryKey().generatedAlwaysAsIdentity(),
  changedAt: instant("changed_at").notNull().defaultNow(),
  previousToken: count("previous_token"),
  token: count("token").notNull(),
  resource: name("resource").notNull(),
  changedBy: text("changed_by").notNull(),
  reason: text("reason").notNull(),
});

export const lineage = palisade.table(
  "lineage",
  {
    onlyRow: boolean("only_row").primaryKey().default(true),
    id: uuid("id").notNull().defaultRandom(),
    beat: count("beat").notNull().default(1),
    // An unsigned number of 64 bits, and therefore no count.
    systemIdentifier: bigint("system_identifier", { mode: "bigint" }).notNull(),
    fenceFloor: count("fence_floor").notNull().default(0),
    confirmedStart: instant("confirmed_start"),
    confirmedTable: count("confirmed_table"),
    confirmedDatabase: count("confirmed_database"),
  },
  (table) => [check("lineage_only_row_check", sql`${table.onlyRow}`)],
);

export const refusals = palisade.table(
  "refusals",
  {
    id: count("id").primaryKey().generatedAlwaysAsIdentity(),
    at: instant("refused_at").notNull(),
    presentedToken: count("presented_token"),
    currentToken: count("current_token"),
    missed: count("missed").notNull(),
    resource: name("resource").notNull(),
    code: text("code").notNull(),
    caller: text("caller").notNull(),
  },
  (table) => [index("refusals_refused_at").on(table.at)],
);

export const recoveries = palisade.table("recoveries", {
  id: count("id").primaryKey().generatedAlwaysAsIdentity(),
  recoveredAt: instant("recovered_at").notNull().defaultNow(),
  beat: count("beat").notNull(),
  fenceFloor: count("fence_floor").notNull(),
  raised: count("raised").notNull(),
  recoveredBy: text("recovered_by").notNull(),
  reason: text("reason").notNull(),
});

export const migrations = palisade.table("migrations", {
  name: text("name").primaryKey(),
  checksum: text("checksum").notNull(),
  appliedAt: instant("applied_at").notNull().defaultNow(),
  runsWith: text("runs_with"),
});
