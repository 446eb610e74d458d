// The public API of @palisade/guard: named exports, no logic.

export type { Issued, Token, VerifyToken } from "./checks.js";
export { type FenceFinding, type FindingKind, inspectFences } from "./doctor.js";
export { type FencedTable, fencedTables, unfence } from "./fenced-tables.js";
export {
  type FencedLease,
  type FencedTransactionCode,
  FencedTransactionError,
  withFencedTransaction,
} from "./fenced-transaction.js";
export { GuardError, type GuardRefusal, type GuardRequest, guard } from "./guard.js";
export type {
  DrizzleTransaction,
  KnexTransaction,
  OpenTransaction,
  PgTransaction,
  PostgresJsTransaction,
  PrismaTransaction,
} from "./statement.js";
export type {
  PgClient,
  PgPool,
  PrismaMethod,
  TransactionMethod,
  TransactionSource,
} from "./transaction-source.js";
