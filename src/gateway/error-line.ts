// Formats an error as one line for people.

import { visibleErrorText } from "../core/shapes/chain-step.ts";
import type { World } from "../world.ts";

/** The longest summary or reason in a list, in characters. */
export const LINE_MAX_CHARS = 200;

/** Returns an error as one redacted line, without the keys of sessions that the reader may not see (I9). */
export function errorLine(
  { world }: { readonly world: Pick<World, "redactor"> },
  error: string,
  sees: (sessionKey: string) => boolean,
): string {
  return world.redactor.line(visibleErrorText(error, sees), LINE_MAX_CHARS);
}
