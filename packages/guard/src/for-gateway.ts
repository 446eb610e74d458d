// What @palisade/gateway shares with the guard, so that a fact stands once. No public API: it may
// change with any release, and the two are released together.

export { checkName, checkText, checkToken, isCount, isName, MAX_NAME_BYTES } from "./checks.js";
export { mayBeCommitted, type ServerError, serverErrorOf } from "./server-error.js";
export { type Issued, MAX_TOKEN, type Token, type VerifyToken } from "./token.js";
