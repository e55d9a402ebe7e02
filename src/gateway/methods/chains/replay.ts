// Owns the method that replays a chain from its record. Only the asking connection gets the progress.

import type { EventPayloads } from "../../../contract/events.ts";
import type { ReplayOutcome } from "../../../contract/methods/chains.ts";
import type { ParamsOf, PayloadOf } from "../../../contract/methods.ts";
import { optional } from "../../../core/optional.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { NO_VARIATION, type Variation } from "../../../core/shapes/record/variation.ts";
import type { Caller } from "../../auth.ts";
import type { CallContext } from "../../call.ts";
import { needEverySession } from "../operations.ts";
import { type RecordDeps, redacted, written } from "./record.ts";

interface WantedReplay {
  /** Returns the text of the record. */
  record(): Promise<Result<string>>;
  readonly variation?: Variation;
  readonly repeat: number;
}

export interface ReplayDeps extends RecordDeps {
  /** Replays a chain, in a process of its own. Absent if that is unavailable. */
  readonly replay?: (
    wanted: WantedReplay,
    watch: {
      readonly signal: AbortSignal;
      progress(replay: number, done: number, total: number): void;
    },
  ) => Promise<Result<readonly ReplayOutcome[]>>;
  /** Sends the progress of a replay to one connection. */
  readonly tellReplay: (caller: Caller, progress: EventPayloads["replay"]) => void;
}

export async function replayChain(
  ctx: CallContext<ReplayDeps>,
  { chainId, repeat = 1, ...changes }: ParamsOf<"chains.replay">,
): Promise<Result<PayloadOf<"chains.replay">>> {
  const allowed = needEverySession(ctx.caller, "chains.replay");
  if (!allowed.ok) return allowed;
  const { caller, deps, signal } = ctx;
  if (deps.replay === undefined) return fail("unknown_method", "this gateway replays no chains");
  const variation = Object.keys(changes).length === 0 ? undefined : { ...NO_VARIATION, ...changes };
  const record = async (): Promise<Result<string>> => {
    const found = await written(ctx, chainId);
    return found.ok ? ok(found.value.text) : found;
  };
  const progress = (replay: number, done: number, total: number): void =>
    deps.tellReplay(caller, { chainId, replay, of: repeat, done, total });
  const wanted = { record, repeat, ...optional({ variation }) };
  const replayed = await deps.replay(wanted, { signal, progress });
  if (!replayed.ok) return replayed;
  return ok(await redacted({ chainId, replays: replayed.value }, deps.world.redactor));
}
