// Decides what the chat shows, and in which order. The transcript is complete; live events only show parts of
// it earlier.
// CV1: each message is shown exactly once. If it was shown live, it is not shown again from the transcript.
//      If it was missed while the connection was down, it is shown from the transcript.
// CV2: a growing text is only appended to. If a resumed run starts its text again, the view says so. Other
//      messages are held back until the growing message is complete.
// CV3: a sub-agent's result can arrive three times (as an event, as a delivery, in the transcript). Only the
//      first is shown.

import type { ChatEvent, FlowData, ToolData } from "../../contract/events.ts";
import { evictOldest } from "../../core/bounded.ts";
import { HEADING, isSilent } from "../../core/rules/turn-rules.ts";
import { type Message, textOf, toolCallsOf } from "../../core/shapes/message.ts";
import { isSubagentKey } from "../../core/shapes/session-key.ts";
import { growingText, safeLine, safeText } from "../../core/text/safe-text.ts";
import { announcementLines, readAnnouncement } from "../announcement-lines.ts";
import type { Cli } from "../cli.ts";
import { excerpt, size } from "../layout.ts";
import {
  arrivedLines,
  below,
  callLine,
  incomingLine,
  messageLines,
  resultLine,
  turnLabel,
} from "../message-lines.ts";

/** A picture of a message, which `chat.image` reads. */
export interface Picture {
  readonly sessionKey: string;
  readonly messageId: string;
  /** Index in the content of the message. */
  readonly index: number;
  readonly mimeType: string;
  readonly bytes: number;
}

/**
 * An instruction for the screen: print a line, append text to the growing line, or end the growing line. A
 * screen that formats Markdown shows `markdown`, the text of an agent, instead of `text`.
 */
export type Op =
  | { readonly op: "line"; readonly text: string; readonly markdown?: string; readonly picture?: Picture }
  | { readonly op: "grow"; readonly text: string; readonly markdown?: string }
  | { readonly op: "end" };

/**
 * Maximum length of each list of texts that were shown. It is greater than the number of texts that can be in
 * progress at the same time.
 */
const REMEMBERED_MAX = 500;
/**
 * Maximum number of calls that are remembered. It is large, because the transcript has the calls of a long
 * run only at the run's end.
 */
const CALLS_REMEMBERED_MAX = 10_000;
const TASK_CHARS_MAX = 160;
/** Number of characters at the start of a result by which it is recognised. */
const MARK_CHARS = 200;

/** Makes copies of one text equal: normalizes white space and control characters. */
function normalize(text: string): string {
  return safeText(text).replaceAll(/\s+/g, " ").trim();
}

/** Removes one occurrence of the text from the list. Returns false if the list does not contain it. */
function take(texts: string[], text: string): boolean {
  const at = texts.indexOf(normalize(text));
  if (at >= 0) texts.splice(at, 1);
  return at >= 0;
}

function remember(texts: string[], text: string): void {
  texts.push(normalize(text));
  if (texts.length > REMEMBERED_MAX) texts.shift();
}

/** Remembers a call. Returns false if it was known already. */
function isFirst(calls: Set<string>, id: string): boolean {
  if (calls.has(id)) return false;
  calls.add(id);
  evictOldest(calls, CALLS_REMEMBERED_MAX);
  return true;
}

/** Returns the lines of a message of a transcript. */
export function messageOps(paint: Pick<Cli, "style">, sessionKey: string, message: Message): Op[] {
  const said = message.role === "assistant" ? textOf(message) : "";
  const isSaid = said !== "" && !isSilent(said);
  const lines = messageLines(paint, message).map(
    (text, at): Op =>
      isSaid && at === 0 ? { op: "line", text, markdown: safeText(said) } : { op: "line", text },
  );
  const pictures = message.content.flatMap((block, index): Op[] => {
    if (block.type !== "image") return [];
    const { mimeType, bytes = 0 } = block;
    const text = paint.style("dim", `  [picture: ${safeLine(mimeType)}, ${size(bytes)}]`);
    return [{ op: "line", text, picture: { sessionKey, messageId: message.id, index, mimeType, bytes } }];
  });
  return [...lines, ...pictures];
}

export class ChatView {
  readonly #paint: Pick<Cli, "style">;
  readonly #sessionKey: string;
  readonly #typed: string[] = [];
  readonly #said: string[] = [];
  readonly #received: string[] = [];
  /** Messages of other sessions that were read from the transcript before their events arrived. */
  readonly #receivedEarly: string[] = [];
  readonly #calls = new Set<string>();
  readonly #results = new Set<string>();
  /** Results that were shown. Key: the text by which a result is recognised. Value: the sub-agent's key. */
  readonly #announced = new Map<string, string>();
  /** Lines that are held back while a message is growing. */
  readonly #held: Op[] = [];
  /**
   * Messages of other sessions, each by the id of the run that answers it. A message is shown when its run
   * starts.
   */
  readonly #arriving = new Map<string, { readonly from: string; readonly text: string }>();
  /** The message that is growing on the terminal, with its text so far. */
  #open: { readonly runId: string; text: string } | undefined;
  /** The last text that each run grew, if it is complete. Its final event may come much later. */
  readonly #grown = new Map<string, string>();
  #lastSettled = "";

  constructor(sessionKey: string, paint: Pick<Cli, "style">) {
    this.#sessionKey = sessionKey;
    this.#paint = paint;
  }

  /** Remembers a message that the user typed here, because the terminal already shows it. */
  typed(text: string): void {
    remember(this.#typed, text);
  }

  chat(event: ChatEvent): Op[] {
    const text = event.message?.content.map((block) => block.text).join("\n") ?? "";
    if (event.state === "delta") return this.#grow(event.runId, text);
    if (event.stopReason === "delivered") {
      const told = this.#announcement(text);
      if (told !== undefined) return told;
    }
    const ops = this.#open?.runId === event.runId ? this.#finish(text) : this.#whole(event.runId, text);
    if (event.state === "aborted") return [...ops, this.#dim("  (stopped)")];
    if (event.state === "error") {
      const why = event.errorMessage ?? event.code ?? "no reason given";
      return [...ops, { op: "line", text: this.#paint.style("red", `  ✗ the run failed: ${below(why)}`) }];
    }
    return ops;
  }

  tool(data: ToolData): Op[] {
    const line = this.#toolLine(data);
    // While the next run is already writing text, a stopped run may still report a tool call: hold its line
    // back.
    const [runId] = data.toolCallId.split(":");
    if (this.#open !== undefined && this.#open.runId !== runId) return this.#holdBack(line);
    return [...this.#settleOpen(), ...line];
  }

  #toolLine(data: ToolData): Op[] {
    // The id of a call is RUN:MESSAGE:INDEX. The transcript does not have the run id, so compare only the
    // rest.
    const call = data.toolCallId.split(":").slice(-2).join(":");
    const isStart = data.phase === "start";
    const told = isStart ? this.#calls : this.#results;
    if (!isFirst(told, call)) return [];
    if (isStart) return [{ op: "line", text: callLine(this.#paint, data.name, data.args) }];
    const { name, result = "", isError = false } = data;
    return [{ op: "line", text: resultLine(this.#paint, result, isError, name) }];
  }

  /**
   * Shows the message that a starting run answers. Before the start, the message could appear inside the
   * output of another run.
   */
  started(runId: string): Op[] {
    const message = this.#arriving.get(runId);
    if (message === undefined) return [];
    this.#arriving.delete(runId);
    if (take(this.#receivedEarly, message.text)) return [];
    remember(this.#received, message.text);
    return [...this.#settleOpen(), this.#incoming(message.from, message.text)];
  }

  /**
   * Shows a message of the transcript whose run is known but has not started yet. Returns undefined for other
   * messages.
   */
  #beforeStart(text: string): Op[] | undefined {
    for (const [runId, message] of this.#arriving) {
      if (normalize(message.text) !== normalize(text)) continue;
      this.#arriving.delete(runId);
      return [...this.#settleOpen(), this.#incoming(message.from, message.text)];
    }
    return undefined;
  }

  /**
   * Shows a step of a flow between this session and another one. `runId` is the run that answers the step.
   */
  flow(runId: string, data: FlowData): Op[] {
    const { step, from, to, turn, turnsMax, text, reason } = data;
    const mine = from === this.#sessionKey;
    const other = safeLine(mine ? to : from);
    switch (step) {
      case "round1":
        if (!mine) this.#arrives(runId, `from ${other}`, text);
        return [];
      case "reply": {
        const label = turnLabel(turn, turnsMax);
        if (!mine) {
          this.#arrives(runId, `from ${other}${label}`, text);
          return [];
        }
        // The text of this step is this session's own reply, which may be shown already.
        if (normalize(text) === normalize(this.#lastSettled) || this.#said.includes(normalize(text)))
          return [];
        remember(this.#said, text);
        return [
          ...this.#settleOpen(),
          { op: "line", text: `${this.#paint.style("blue", `  » to ${other}${label}:`)} ${below(text)}` },
        ];
      }
      case "task": {
        if (!mine) return [];
        const head = this.#paint.style("blue", `  » sub-agent ${other} starts:`);
        return this.#holdBack([{ op: "line", text: `${head} ${excerpt(text, TASK_CHARS_MAX)}` }]);
      }
      case "announce": {
        // The announcement is also the last message of the sub-agent's own session, which is shown anyway.
        if (mine && readAnnouncement(text, from) !== undefined) return [];
        const result = mine ? undefined : this.#announcement(text, from);
        if (result !== undefined) return result;
        // The transcript stores a fixed sentence as the input of this turn. Do not show it again.
        if (!mine) remember(this.#received, `${HEADING.announce}.`);
        return [
          this.#dim(
            mine
              ? `  ↔ ${other} announces the result to its own people`
              : `  ↔ the conversation with ${other} is over; announcing`,
          ),
        ];
      }
      case "refused":
        // The result of the refused call already shows the refusal.
        return [];
      case "ended":
        if (reason === undefined && isSubagentKey(from)) return this.#jobEnded(from, mine);
        return [
          this.#dim(
            `  ↔ conversation with ${other} ended${reason === undefined ? "" : ` (${safeLine(reason)})`}`,
          ),
        ];
    }
  }

  /** Shows the new messages of the transcript, oldest first, unless they were shown live. */
  settle(messages: readonly Message[]): Op[] {
    const calls = new Map<string, string>();
    return messages.flatMap((message) => this.#settleOne(message, calls));
  }

  #settleOne(message: Message, calls: Map<string, string>): Op[] {
    switch (message.role) {
      case "user": {
        const text = textOf(message);
        if (message.provenance === undefined) return take(this.#typed, text) ? [] : this.#lines(message);
        if (take(this.#received, text)) return [];
        const { provenance } = message;
        if (provenance.kind === "inter_session") {
          const told = this.#announcement(text, provenance.sourceSessionKey);
          if (told !== undefined) return told;
          const early = this.#beforeStart(text);
          if (early !== undefined) return early;
          remember(this.#receivedEarly, text);
        }
        return arrivedLines(this.#paint, provenance, text).map((line) => ({ op: "line", text: line }));
      }
      case "assistant": {
        const before = this.#settleText(message);
        const fresh = toolCallsOf(message).flatMap((call, index): Op[] => {
          const id = `${message.id}:${index}`;
          calls.set(call.id, id);
          if (!isFirst(this.#calls, id)) return [];
          return [{ op: "line", text: callLine(this.#paint, call.name, call.arguments) }];
        });
        return [...before, ...fresh];
      }
      case "toolResult": {
        const id = calls.get(message.toolCallId);
        if (id !== undefined && !isFirst(this.#results, id)) return [];
        return this.#holdBack(this.#lines(message));
      }
    }
  }

  #settleText(message: Message): Op[] {
    const text = textOf(message);
    if (text === "" || isSilent(text)) return [];
    this.#lastSettled = text;
    if (take(this.#said, text)) return [];
    const open = this.#open;
    if (open !== undefined && growingText(text).startsWith(open.text)) {
      const ops = this.#finish(text);
      take(this.#said, text);
      return ops;
    }
    // The transcript does not have the growing text, because the gateway stopped before it stored the
    // message. So only end the line.
    this.#open = undefined;
    const end: Op[] = open === undefined ? [] : [{ op: "end" }, ...this.#held.splice(0)];
    return [...end, this.#agent("line", safeText(text))];
  }

  #grow(runId: string, text: string): Op[] {
    const whole = growingText(text);
    const open = this.#open;
    if (open?.runId !== runId) {
      // Ignore a late delta of a message that the transcript has already shown in full.
      if (safeText(this.#lastSettled).startsWith(whole)) return [];
      const ops = this.#settleOpen();
      this.#open = { runId, text: whole };
      return [...ops, this.#agent("grow", whole)];
    }
    if (open.text.startsWith(whole)) return [];
    if (whole.startsWith(open.text)) {
      const more = whole.slice(open.text.length);
      open.text = whole;
      return [{ op: "grow", text: more }];
    }
    open.text = whole;
    return [{ op: "end" }, this.#dim("  (restarted)"), this.#agent("grow", whole)];
  }

  /** Shows a complete text, unless its deltas or the transcript have already shown it. */
  #whole(runId: string, text: string): Op[] {
    const shown = [this.#lastSettled, this.#grown.get(runId) ?? ""].map(normalize);
    if (text === "" || shown.includes(normalize(text))) return [];
    remember(this.#said, text);
    return [...this.#settleOpen(), this.#agent("line", safeText(text))];
  }

  #arrives(runId: string, from: string, text: string): void {
    this.#arriving.set(runId, { from, text });
    evictOldest(this.#arriving, REMEMBERED_MAX);
  }

  /** Completes the growing message with its final text. If `text` is empty, ends the message as it is. */
  #finish(text: string): Op[] {
    const ops = text === "" || this.#open === undefined ? [] : this.#grow(this.#open.runId, text);
    return [...ops, ...this.#settleOpen()];
  }

  #settleOpen(): Op[] {
    if (this.#open === undefined) return [];
    const { runId, text } = this.#open;
    remember(this.#said, text);
    this.#grown.set(runId, text);
    evictOldest(this.#grown, REMEMBERED_MAX);
    this.#open = undefined;
    return [{ op: "end" }, ...this.#held.splice(0)];
  }

  /**
   * Returns the lines if no message is growing. Otherwise keeps them until the growing message is complete.
   */
  #holdBack(ops: readonly Op[]): Op[] {
    if (this.#open === undefined) return [...ops];
    this.#held.push(...ops);
    return [];
  }

  /**
   * Shows a sub-agent's result, unless it was shown before. Returns undefined if the text is not a result.
   */
  #announcement(text: string, from?: string): Op[] | undefined {
    const announcement = readAnnouncement(text, from);
    if (announcement === undefined) return undefined;
    const { childKey, status, result, stats } = announcement;
    const mark = [status, result.slice(0, MARK_CHARS), stats].join("\n");
    if (this.#announced.has(mark)) return [];
    this.#noteAnnounced(mark, childKey);
    const lines = announcementLines(this.#paint, announcement);
    return this.#holdBack(lines.map((line) => ({ op: "line", text: line })));
  }

  /** Reports the end of a sub-agent's job, unless its result was already shown. */
  #jobEnded(childKey: string, mine: boolean): Op[] {
    if (mine || [...this.#announced.values()].includes(childKey)) return [];
    this.#noteAnnounced(childKey, childKey);
    return this.#holdBack([this.#dim(`  « sub-agent ${safeLine(childKey)} ended without an announcement`)]);
  }

  #noteAnnounced(mark: string, childKey: string): void {
    this.#announced.set(mark, childKey);
    evictOldest(this.#announced, REMEMBERED_MAX);
  }

  /** Begins a text of the agent. */
  #agent(op: "line" | "grow", markdown: string): Op {
    return { op, text: `${this.#paint.style("green", "agent:")} ${markdown}`, markdown };
  }

  #incoming(from: string, text: string): Op {
    return { op: "line", text: incomingLine(this.#paint, from, text) };
  }

  #dim(text: string): Op {
    return { op: "line", text: this.#paint.style("dim", text) };
  }

  #lines(message: Message): Op[] {
    return messageOps(this.#paint, this.#sessionKey, message);
  }
}
