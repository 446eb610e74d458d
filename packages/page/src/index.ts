// What a gateway needs to mount the page: named exports, no logic.
export type { Caller, PageAnswer, PageRoute, WatchedGateway, WatchedLock } from "./gateway.js";
export type { FenceView, HistoryView, RefusedWrite, Trouble } from "./messages.js";
export { OperatorPage, pageFiles } from "./page.js";
