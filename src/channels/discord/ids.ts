// Reads Discord's ids and the times in them. A value of the wrong shape counts as missing.

/** Discord ids have at most 64 bits, as decimal digits. */
const ID = /^[0-9]{1,20}$/;

/** Ids count milliseconds from the start of 2015. */
const EPOCH_MS = 1_420_070_400_000;
const TIME_SHIFT = 22n;

/** Returns the id of a user, channel or message. */
export function idOf(value: unknown): string | undefined {
  return typeof value === "string" && ID.test(value) ? value : undefined;
}

/** Whether the first id was created after the second. */
export function isNewer(id: string, than: string): boolean {
  return BigInt(id) > BigInt(than);
}

/** Returns the creation time in an id, in ms since 1970. */
export function timeOfId(id: string): number {
  return Number(BigInt(id) >> TIME_SHIFT) + EPOCH_MS;
}

/** Returns the smallest id that could be created at this time. */
export function idOfTime(ms: number): string {
  return String(BigInt(Math.max(0, Math.floor(ms) - EPOCH_MS)) << TIME_SHIFT);
}
