// Owns what follows from the end of a run that came from a channel: its answer goes back to where it was
// asked.
// DR1: the outbox row is written by the transaction that ends the run (I4, I5), for the route of the
//      message that began it: one person never gets another's answer.
// DR2: silence stays silent; a run that failed says so in one sentence; one that was aborted says nothing.
// DR3: the send policy is asked here, where text would leave (SPEC 5): denied, the row is `skipped`.
//      It is asked for the place of the answer.

import type { Redactor } from "../core/redact.ts";
import { WEBCHAT } from "../core/route.ts";
import type { Run } from "../core/run.ts";
import { isSilent } from "../core/turn-rules.ts";
import type { Unit } from "../engine/unit.ts";
import { getSession } from "../store/sessions.ts";
import type { JobParts } from "./job.ts";
import { queueDelivery } from "./outbox.ts";

const CAUSE_CHARS_MAX = 300;

/** Why a run failed, in one sentence for people. */
function failureWords({ state, error }: Run, redactor: Redactor): string {
  if (state === "timeout") return "I ran out of time before I had finished this.";
  const line =
    redactor
      .mask(error ?? "")
      .split("\n")
      .find((one) => one.trim() !== "") ?? "";
  const cause = line.trim();
  if (cause === "") return "Something went wrong, and I could not finish this.";
  const cut = cause.length > CAUSE_CHARS_MAX ? `${cause.slice(0, CAUSE_CHARS_MAX).toWellFormed()}…` : cause;
  return `I could not finish this: ${cut}`;
}

/** What is said at the end of a run; undefined: nothing. */
async function wordsOf(run: Run, redactor: Redactor): Promise<string | undefined> {
  switch (run.state) {
    case "ok": {
      const reply = run.reply ?? "";
      return isSilent(reply) ? undefined : redactor.whole(reply);
    }
    case "error":
    case "timeout": {
      // A run that was to tell of a sub-agent and never began: its result is told in another way.
      const isToldElsewhere = run.startedAt === undefined || run.code === "chain_limit";
      return run.input.provenance !== undefined && isToldElsewhere ? undefined : failureWords(run, redactor);
    }
    default:
      return undefined;
  }
}

/**
 * A run has ended; if it came from a channel, and is no part of a conversation between sessions, it
 * answers.
 */
export async function directRunEnded(
  parts: Pick<JobParts, "settings" | "outbound">,
  unit: Unit,
  run: Run,
): Promise<void> {
  const { route, flow, kind, runId } = run;
  if (route === undefined || route.channel === WEBCHAT || flow !== undefined || kind !== "turn") return;
  const origin = run.input.provenance?.kind;
  // Where their replies go is the hook's, or the job's, to say.
  if (origin === "hook" || origin === "cron") return;
  const text = await wordsOf(run, unit.redactor);
  const session = text === undefined ? undefined : await getSession(unit.tx, run.sessionKey);
  if (text === undefined || session === undefined) return;
  // Where a person asked, whoever has written elsewhere meanwhile. An operator's choice is looked at in full.
  const asked = run.input.sender === undefined ? session : { ...session, lastRoute: route };
  await queueDelivery(parts, unit, { session: asked, route, text, kind: "send", runId, isAnswer: true });
}
