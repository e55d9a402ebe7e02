// Owns how numbers and ids are read of what Discord says, and what an id tells.
// DF1: what has another shape than it should have is as if it were not there; nothing throws.

/** Discord's numbers for things have at most 64 bits, as decimal digits. */
const ID = /^[0-9]{1,20}$/;

/** Discord counts its ids' milliseconds from the first moment of 2015. */
const EPOCH_MS = 1_420_070_400_000;
const TIME_SHIFT = 22n;

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** The number of a user, channel, message, … */
export function idOf(value: unknown): string | undefined {
  return typeof value === "string" && ID.test(value) ? value : undefined;
}

/** Whether the first was made after the second. */
export function isNewer(id: string, than: string): boolean {
  return BigInt(id) > BigInt(than);
}

/** When a thing was made, in ms since 1970: its id says so. */
export function timeOfId(id: string): number {
  return Number(BigInt(id) >> TIME_SHIFT) + EPOCH_MS;
}

/** The smallest id of things that were made at this time. */
export function idOfTime(ms: number): string {
  return String(BigInt(Math.max(0, Math.floor(ms) - EPOCH_MS)) << TIME_SHIFT);
}
