// Which token a call carries, and whether its lease still lives here. Must not read a token from anywhere else: a remembered token outlives its lease.

/** The part of a lease the client needs; the leases of @palisade/lock fit. */
export interface LeaseLike {
  readonly token: number;
  readonly signal: AbortSignal;
}

export type Holder = { readonly lease: LeaseLike; readonly token?: undefined } | { readonly token: number; readonly lease?: undefined };

export function tokenOf(holder: { readonly lease?: LeaseLike | undefined; readonly token?: number | undefined }): number {
  const token = holder.lease?.token ?? holder.token;
  if (!Number.isSafeInteger(token) || token === undefined || token < 1 || token > 999_999_999_999_999) {
    throw new RangeError(`a fencing token is a whole number from 1 to 999999999999999, not ${String(token)}`);
  }
  return token;
}

/** The value of the Fencing-Token header. */
export function fencingHeader(token: number, seq: number | undefined): string {
  if (seq === undefined) return String(token);
  if (!Number.isSafeInteger(seq) || seq < 1 || seq > 999_999_999_999_999)
    throw new RangeError(`a sequence number is a whole number from 1, not ${seq}`);
  return `${token};seq=${seq}`;
}
