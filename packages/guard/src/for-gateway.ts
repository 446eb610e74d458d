// What @palisade/gateway shares with the guard, so that a fact stands once. No public API: it may
// change with any release, and the two are released together.

export {
  checkName,
  checkText,
  checkToken,
  type Issued,
  isCount,
  isName,
  MAX_NAME_BYTES,
  MAX_TOKEN,
  type Token,
  type VerifyToken,
} from "./checks.js";
export { databaseUrlFault, withClient } from "./database-url.js";
export { underLock } from "./schema.js";
export { mayBeCommitted, type ServerError, serverErrorOf } from "./server-error.js";
export { citusFunctions, citusTables } from "./sql.generated.js";
