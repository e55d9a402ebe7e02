// Names the author of a message, and its step in a flow between sessions. Pure.
// OR1: author and step come from the typed provenance and the run, never from the text. Only the session of a
//      program notes in its texts to whom they were sent.

import { readSentNote, type SentNote } from "../../../src/core/sent-note.ts";
import { isProgram } from "../sessions/own-name.ts";
import type { Message, Run } from "./thread.ts";

/** Kind of author. `own`: people. `session`: another session. `runtime`: the gateway. */
type Manner = "own" | "agent" | "session" | "runtime";

export interface Origin {
  readonly manner: Manner;
  readonly who: string;
  /** Key of the other session that sent the message. */
  readonly sessionKey?: string | undefined;
  /** Key of the session that got the message. */
  readonly to?: string;
  readonly marks: readonly string[];
}

/** Names of authors that have no name of their own. */
export const AUTHORS = {
  agent: "Agent",
  person: "You",
  session: "Session",
  notice: "Notice",
  note: "Note",
  cron: "Schedule",
  hook: "Web hook",
  node: "Device",
} as const;

/** Returns a label for the step of a flow that a run answers. Reply turns are counted from 1. */
function stepMark(run: Run | undefined): string | undefined {
  const { flow } = run ?? {};
  if (flow?.step === "announce") return "announce step";
  if (flow?.step === "task") return "task from";
  if (flow?.step !== "reply") return undefined;
  return `reply turn ${flow.turn - 1}${flow.turnsMax === undefined ? "" : ` of ${flow.turnsMax}`}`;
}

/** Returns the label for another session's message to which `stepMark` gives none. */
function sentMark(sourceTool: string, run: Run | undefined): string {
  if (sourceTool === "sessions_spawn") return "result of a sub-agent";
  return run?.flow?.step === "round1" ? "asked by" : "sent by";
}

function ofUser(message: Extract<Message, { role: "user" }>, run: Run | undefined): Origin {
  const { provenance, senderName = AUTHORS.person } = message;
  const step = stepMark(run);
  if (provenance === undefined)
    return { manner: "own", who: senderName, marks: step === undefined ? [] : [step] };
  if (provenance.kind === "inter_session") {
    const { sourceSessionKey: sessionKey, sourceTool } = provenance;
    return { manner: "session", who: sessionKey, sessionKey, marks: [step ?? sentMark(sourceTool, run)] };
  }
  const who = AUTHORS[provenance.kind];
  if (provenance.kind === "notice")
    return { manner: "runtime", who, sessionKey: provenance.sourceSessionKey, marks: [] };
  return { manner: "runtime", who, marks: provenance.source === undefined ? [] : [provenance.source] };
}

export function originOf(message: Message, run: Run | undefined, agentId: string): Origin {
  if (message.role === "user") return ofUser(message, run);
  if (message.role === "toolResult") return { manner: "agent", who: agentId, marks: ["tool result"] };
  if (message.stopReason === "injected") return { manner: "runtime", who: AUTHORS.note, marks: [] };
  const step = run?.flow?.step;
  const mark = step === "announce" ? "announcement" : step === "reply" ? stepMark(run) : undefined;
  return { manner: "agent", who: agentId, marks: mark === undefined ? [] : [mark] };
}

/** Returns the recipient and the text of a message that the program of this session has sent. */
export function sentNoteIn(sessionKey: string, message: Message): SentNote | undefined {
  if (!isProgram(sessionKey) || message.role !== "assistant" || message.stopReason !== "injected") return;
  const [block] = message.content;
  return block?.type === "text" ? readSentNote(block.text) : undefined;
}
