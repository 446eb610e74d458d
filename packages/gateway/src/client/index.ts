// The typed client: a front door without a server behind it. Needs nothing but fetch, so it runs in Node, browsers and edge runtimes.
export {
  createGatewayClient,
  type GatewayClient,
  type GatewayClientOptions,
} from "./gateway-client.js";
export type { GetOptions, ListOptions, Operation, TransactionOptions, WriteOptions } from "./options.js";
export { RawJson, rawJson } from "./raw-json.js";
export type { RefusalCode } from "./refusal-code.js";
export type {
  DeleteResult,
  GetResult,
  ListedResource,
  ListResult,
  PatchResult,
  PutResult,
  Refusal,
  SealResult,
  TransactionResult,
} from "./results.js";
export type { LeaseLike } from "./token-of.js";
export { GatewayError, type LockerLike, type ResourceWork, type WithResourceOptions, withResource } from "./with-resource.js";
