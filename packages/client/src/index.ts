// The typed client of the gateway, for Node, browsers and edge runtimes.
export { createGatewayClient, type GatewayClient, type GatewayClientOptions } from "./gateway-client.js";
export type {
  CallOptions,
  FenceChange,
  GetOptions,
  HistoryOptions,
  ListOptions,
  Operation,
  RefusedOptions,
  SealOptions,
  TransactionOptions,
  WriteOptions,
} from "./options.js";
export type { Holder, LeaseLike } from "./request-format.js";
export { RawJson, rawJson } from "./request-format.js";
export type {
  ConditionalGetResult,
  DeleteResult,
  FenceChangeResult,
  FenceMove,
  FenceResult,
  GetResult,
  HistoryEntry,
  HistoryResult,
  ListedResource,
  ListResult,
  LocalCode,
  PatchResult,
  PutResult,
  Refusal,
  RefusalCode,
  RefusedEntry,
  RefusedResult,
  SealResult,
  TransactionResult,
} from "./results.js";
export type { RetryPolicy } from "./retry.js";
export {
  type Changes,
  type Documents,
  GatewayError,
  type HeldLease,
  type LockerLike,
  type ResourceResult,
  type ResourceWork,
  type WithResourceOptions,
  withResource,
} from "./with-resource.js";
