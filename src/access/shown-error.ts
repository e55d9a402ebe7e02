// Returns errors of runs without the keys of sessions that their reader may not see (I9). Such an error may
// quote text of any session. The caller redacts the result.

import type { Viewer } from "../core/rules/visibility.ts";
import { keysInError, visibleErrorText } from "../core/shapes/chain-step.ts";
import type { Session } from "../core/shapes/session.ts";
import { type AccessContext, sessionViewer, visibleAmong } from "./access.ts";
import { spawnChainOf } from "./spawn-chain.ts";

/** Returns an error as this viewer may read it. */
export async function errorSeenBy(ctx: AccessContext, viewer: Viewer, error: string): Promise<string> {
  const sees = await visibleAmong(ctx, viewer, "status", keysInError(error));
  return visibleErrorText(error, sees);
}

/**
 * Returns the error of a run in session `from` for the transcript of `reader`. The rights of an external
 * session are those of its client's token, which is not known here: it reads only the names that it knows.
 */
export async function errorToldTo(
  ctx: AccessContext,
  { reader, from }: { readonly reader: Session; readonly from: string },
  error: string,
): Promise<string> {
  if (reader.external) return visibleErrorText(error, (key) => [reader.key, from].includes(key));
  return errorSeenBy(ctx, sessionViewer(await spawnChainOf(ctx.db, reader), ctx.settings), error);
}
