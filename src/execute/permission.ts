// Asks the owner for permission during a run, and waits for the answer.
// PD1: in each of these cases a request is denied: no answer in time, a run that ends, a gateway that stops,
//      a store that fails.

import type { PermissionDecision } from "../core/shapes/permission.ts";
import type { Engine } from "../engine/engine.ts";
import type { RunWait } from "../engine/lanes/waits.ts";
import { closePermission, openPermission, type PermissionRequest } from "../flows/permission.ts";
import type { Log } from "../world.ts";

export interface PermissionParts {
  readonly engine: Pick<Engine, "commit">;
}

/** Resolves with the owner's decision, or with a denial if the owner does not decide in time (PD1). */
export async function askPermission(
  parts: PermissionParts,
  asked: PermissionRequest,
  { wait, signal, log }: { wait: RunWait; signal: AbortSignal; log: Log },
): Promise<PermissionDecision> {
  const { engine } = parts;
  if (signal.aborted) return "deny";
  try {
    const opened = await engine.commit(async (unit) =>
      (await wait.holds(unit)) ? openPermission(unit, asked) : undefined,
    );
    if (opened?.ok === false) log.warn({ why: opened.error }, "a permission request was denied");
    if (!opened?.ok) return "deny";
    const question = opened.value;
    const decided = await wait.waitForDecision(question, signal, true);
    // This write is not awaited, so that a stopped run ends without waiting for the store.
    const closed = engine.commit((unit) => closePermission(unit, question));
    closed.catch((error: unknown) => log.debug({ err: error }, "a permission request could not be deleted"));
    return decided?.decision ?? "deny";
  } catch (error) {
    log.error({ err: error }, "a permission request failed and counts as denied");
    return "deny";
  }
}
