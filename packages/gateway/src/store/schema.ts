// The tables that are read through drizzle. The SQL files in migrations/ are what is applied; a test
// compares the two. Fenced writes have one statement, in write/statement.ts.
import { sql } from "drizzle-orm";
import { bigint, boolean, check, customType, index, jsonb, pgSchema, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

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
  },
  (table) => [primaryKey({ name: "history_pkey", columns: [table.resource, table.rev] }), index("history_written_at").on(table.writtenAt)],
);
