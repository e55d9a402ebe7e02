// Chooses the texts of an ended run that its chat gets, in order, each once (I4): the texts between its tool
// calls if the chat wants them, the last text, and a sentence if the answer is incomplete or the run failed.

import { chatTypesOf } from "../../core/rules/send-policy.ts";
import { isSilent } from "../../core/rules/turn-rules.ts";
import { CUT_SHORT, isAutomatic, type Run } from "../../core/shapes/run.ts";
import type { Route, Session } from "../../core/shapes/session.ts";
import { accountOf } from "../../core/shapes/settings/channels.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { cut } from "../../core/text/cut.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { spokenTexts } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import { readRun } from "../../store/queries/transcripts/transcripts.ts";

const CAUSE_CHARS_MAX = 300;

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

/**
 * Returns whether a chat gets the texts between the tool calls of a run. Jobs, web hooks and nodes send only
 * the last text.
 */
function wantsSteps(settings: Settings, { input }: Run, session: Session, route: Route): boolean {
  if (isAutomatic(input)) return false;
  const steps = accountOf(settings.channels, route)?.steps;
  if (steps !== undefined) return steps === "all";
  // A session of all chats does not say which kind this one is.
  return session.key !== "global" && chatTypesOf(session).includes("direct");
}

/** Returns the texts of a run for a chat. A run that ended with silence has none. */
export async function answerTexts(
  settings: Settings,
  { tx, redactor }: Unit,
  run: Run,
  { session, route }: { readonly session: Session; readonly route: Route },
): Promise<string[]> {
  const { state, reply = "" } = run;
  if (state === "ok" && isSilent(reply)) return [];
  const before = wantsSteps(settings, run, session, route)
    ? spokenTexts(await readRun(tx, run.runId)).slice(0, -1)
    : [];
  const texts = [...before, ...(isSilent(reply) ? [] : [reply])];
  const last =
    run.state !== "ok"
      ? failureWords(run, redactor)
      : run.error === CUT_SHORT
        ? "The answer was cut at the output limit."
        : undefined;
  return [...(await Promise.all(texts.map((text) => redactor.whole(text)))), ...(last ? [last] : [])];
}
