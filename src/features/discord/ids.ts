// Reads Discord's ids, and the times in them. An invalid id counts as missing.

/** A Discord id has at most 64 bits. It is written as a decimal number. */
const ID = /^[0-9]{1,20}$/;

/** Start of 2015: the times in Discord's ids are counted from here. */
const EPOCH_MS = 1_420_070_400_000;
const TIME_SHIFT = 22n;

/** Returns a valid id of a user, channel or message. Returns undefined for any other value. */
export function idOf(value: unknown): string | undefined {
  return typeof value === "string" && ID.test(value) ? value : undefined;
}

/** Returns whether the first id was created after the second one. */
export function isNewer(id: string, than: string): boolean {
  return BigInt(id) > BigInt(than);
}

/** Returns the time at which an id was created, in ms since 1970. */
export function timeOfId(id: string): number {
  return Number(BigInt(id) >> TIME_SHIFT) + EPOCH_MS;
}

/** Returns the smallest id that can be created at this time. */
export function idOfTime(ms: number): string {
  return String(BigInt(Math.max(0, Math.floor(ms) - EPOCH_MS)) << TIME_SHIFT);
}
