// Shows errors of runs and deliveries to a caller: redacted, and without the keys of sessions that the caller
// may not see (I9).

import { createGate, type TokenRights } from "../access/token.ts";
import { visibleErrorText } from "../core/shapes/chain-step.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
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

/** Returns the function that shows a caller the whole text of an error. */
export function errorsFor(
  { settings, world }: { readonly settings: Settings; readonly world: Pick<World, "redactor"> },
  caller: TokenRights,
): (error: string) => string {
  const sees = createGate(settings, caller, "list");
  return (error) => world.redactor.mask(visibleErrorText(error, sees));
}
