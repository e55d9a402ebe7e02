// Sends the answer of a run back to the place of its message, when the run came from a channel. The outbox
// row is written by the transaction that ends the run (I4, I5), for the route of the run's first message, so
// one person never gets another's answer.
// DR2: silence is not delivered; a failed run reports its error in one sentence; an aborted run sends
//      nothing.
// DR3: the send policy is checked here, for the place of the answer. If it denies, the row is `skipped`.

import { isSilent } from "../../core/rules/turn-rules.ts";
import { WEBCHAT } from "../../core/shapes/route.ts";
import type { Run } from "../../core/shapes/run.ts";
import { cut } from "../../core/text/cut.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { Unit } from "../../engine/unit.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { queueDelivery } from "../delivery/outbox.ts";
import type { JobParts } from "../job/end.ts";

const CAUSE_CHARS_MAX = 300;

/** Returns the failure of a run in one sentence for people. */
function failureWords({ state, error }: Run, redactor: Redactor): string {
  if (state === "timeout") return "I ran out of time before I had finished this.";
  const line =
    redactor
      .mask(error ?? "")
      .split("\n")
      .find((one) => one.trim() !== "") ?? "";
  const cause = line.trim();
  if (cause === "") return "Something went wrong, and I could not finish this.";
  return `I could not finish this: ${cut(cause, CAUSE_CHARS_MAX)}`;
}

/** Returns the text to deliver at the end of a run; undefined: none. */
async function wordsOf(run: Run, redactor: Redactor): Promise<string | undefined> {
  switch (run.state) {
    case "ok": {
      const reply = run.reply ?? "";
      return isSilent(reply) ? undefined : redactor.whole(reply);
    }
    case "error":
    case "timeout": {
      // The run was to report a sub-agent's result, which is now reported in another way.
      const isToldElsewhere = run.startedAt === undefined || run.code === "chain_limit";
      return run.input.provenance !== undefined && isToldElsewhere ? undefined : failureWords(run, redactor);
    }
    default:
      return undefined;
  }
}

/**
 * Delivers the answer of an ended run that came from a channel and is not part of a conversation between
 * sessions.
 */
export async function directRunEnded(
  parts: Pick<JobParts, "settings" | "outbound">,
  unit: Unit,
  run: Run,
): Promise<void> {
  const { route, flow, kind, runId } = run;
  if (route === undefined || route.channel === WEBCHAT || flow !== undefined || kind !== "turn") return;
  const origin = run.input.provenance?.kind;
  // The hook or job decides where replies of these runs go.
  if (origin === "hook" || origin === "cron") return;
  const text = await wordsOf(run, unit.redactor);
  const session = text === undefined ? undefined : await getSession(unit.tx, run.sessionKey);
  if (text === undefined || session === undefined) return;
  // The place of the question counts, not where others have written since. An operator's choice is checked in
  // full.
  const asked = run.input.sender === undefined ? session : { ...session, lastRoute: route };
  await queueDelivery(parts, unit, { session: asked, route, text, kind: "send", runId, isAnswer: true });
}
