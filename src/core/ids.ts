// Finds the ids in a text.

/** Matches each UUID. */
export const UUIDS = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

/** Returns the text with a sign in place of each id, to compare texts that differ only by ids. */
export const withoutIds = (text: string): string => text.replace(UUIDS, "…");
