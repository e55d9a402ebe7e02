// Owns what the chat shows and in which order: the transcript is the truth, live events only bring it
// forward.
// CV1: what was shown live is recognised when it is met in the transcript, and not shown again; what was
//      missed while the connection was down is shown then. So nothing is lost and nothing comes twice.
// CV2: text that grows is only ever added to; where it begins anew (a resumed run), that is said. What comes
//      from elsewhere meanwhile is held back until the message that grows is whole.
// CV3: a sub-agent's result comes by up to three ways (its event, its delivery, the transcript) and is shown
//      once, by the first of them.

import { dropOldest } from "../../core/bounded.ts";
import { type Message, textOf, toolCallsOf } from "../../core/message.ts";
import { growingText, safeLine, safeText } from "../../core/safe-text.ts";
import { isSubagentKey } from "../../core/session-key.ts";
import { HEADING, isSilent } from "../../core/turn-rules.ts";
import type { ChatEvent, FlowData, ToolData } from "../../gateway/protocol.ts";
import { announcementLines, readAnnouncement } from "../announcement-lines.ts";
import type { Cli } from "../cli.ts";
import { excerpt } from "../layout.ts";
import {
  arrivedLines,
  below,
  callLine,
  incomingLine,
  messageLines,
  resultLine,
  turnLabel,
} from "../message-lines.ts";

/** What the terminal has to do: a line of its own, or text added to the line that grows. */
export type Op =
  | { readonly op: "line"; readonly text: string }
  | { readonly op: "grow"; readonly text: string }
  | { readonly op: "end" };

/** Of each sort of thing that was shown and may come a second time. More than this are never under way. */
const REMEMBERED_MAX = 500;
/** The calls of a long run are all met in the transcript at its end. */
const CALLS_REMEMBERED_MAX = 10_000;
const TASK_CHARS_MAX = 160;
/** Of a result, to tell it from others. */
const MARK_CHARS = 200;

/** The same words, however they were wrapped or escaped. */
function gist(text: string): string {
  return safeText(text).replaceAll(/\s+/g, " ").trim();
}

/** Takes one occurrence out; false if there was none. */
function take(texts: string[], text: string): boolean {
  const at = texts.indexOf(gist(text));
  if (at >= 0) texts.splice(at, 1);
  return at >= 0;
}

function remember(texts: string[], text: string): void {
  texts.push(gist(text));
  if (texts.length > REMEMBERED_MAX) texts.shift();
}

/** Remembers a call; false if it is known. */
function isFirst(calls: Set<string>, id: string): boolean {
  if (calls.has(id)) return false;
  calls.add(id);
  dropOldest(calls, CALLS_REMEMBERED_MAX);
  return true;
}

export class ChatView {
  readonly #paint: Pick<Cli, "style">;
  readonly #sessionKey: string;
  readonly #typed: string[] = [];
  readonly #said: string[] = [];
  readonly #received: string[] = [];
  /** Messages of others that the transcript showed before the start of their run was reported. */
  readonly #receivedEarly: string[] = [];
  readonly #calls = new Set<string>();
  readonly #results = new Set<string>();
  /** Results that were shown, by what no other result has in common with them, and whose they are. */
  readonly #announced = new Map<string, string>();
  /** What came from elsewhere while a message was growing. */
  readonly #held: Op[] = [];
  /** Messages of others by the run that answers them: shown when that begins. */
  readonly #arriving = new Map<string, { readonly from: string; readonly text: string }>();
  /** The message that is being written: as much of it as stands on the terminal. */
  #open: { readonly runId: string; text: string } | undefined;
  #lastSettled = "";

  constructor(sessionKey: string, paint: Pick<Cli, "style">) {
    this.#sessionKey = sessionKey;
    this.#paint = paint;
  }

  /** The person at this terminal wrote something: it stands there already. */
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
    const ops = this.#open?.runId === event.runId ? this.#finish(text) : this.#whole(text);
    if (event.state === "aborted") return [...ops, this.#dim("  (stopped)")];
    if (event.state === "error") {
      const why = event.errorMessage ?? event.code ?? "it did not say why";
      return [...ops, { op: "line", text: this.#paint.style("red", `  ✗ the run failed: ${below(why)}`) }];
    }
    return ops;
  }

  tool(data: ToolData): Op[] {
    const line = this.#toolLine(data);
    // A run that was stopped may tell of its call when the next one writes already.
    const [runId] = data.toolCallId.split(":");
    if (this.#open !== undefined && this.#open.runId !== runId) return this.#aside(line);
    return [...this.#settleOpen(), ...line];
  }

  #toolLine(data: ToolData): Op[] {
    // A call's id is <run>:<message>:<index>; the message's id is what the transcript has too.
    const call = data.toolCallId.split(":").slice(-2).join(":");
    const isStart = data.phase === "start";
    const told = isStart ? this.#calls : this.#results;
    if (!isFirst(told, call)) return [];
    if (isStart) return [{ op: "line", text: callLine(this.#paint, data.name, data.args) }];
    return [{ op: "line", text: resultLine(this.#paint, data.result ?? "", data.isError === true) }];
  }

  /**
   * A run of this session begins: what it answers is shown now, and not while another one is still being
   * shown.
   */
  started(runId: string): Op[] {
    const message = this.#arriving.get(runId);
    if (message === undefined) return [];
    this.#arriving.delete(runId);
    if (take(this.#receivedEarly, message.text)) return [];
    remember(this.#received, message.text);
    return [...this.#settleOpen(), this.#incoming(message.from, message.text)];
  }

  /** A step of a conversation between this session and another one; `runId` is the run that takes it. */
  flow(runId: string, data: FlowData): Op[] {
    const { step, from, to, turn, turnsMax, text, reason } = data;
    const mine = from === this.#sessionKey;
    const other = safeLine(mine ? to : from);
    switch (step) {
      case "round1":
        if (!mine) this.#arrives(runId, `from ${other}`, text);
        return [];
      case "reply": {
        const place = turnLabel(turn, turnsMax);
        if (!mine) {
          this.#arrives(runId, `from ${other}${place}`, text);
          return [];
        }
        // Said already: the other's turn begins with what this session has just answered.
        if (gist(text) === gist(this.#lastSettled) || this.#said.includes(gist(text))) return [];
        remember(this.#said, text);
        return [
          ...this.#settleOpen(),
          { op: "line", text: `${this.#paint.style("blue", `  » to ${other}${place}:`)} ${below(text)}` },
        ];
      }
      case "task": {
        if (!mine) return [];
        const head = this.#paint.style("blue", `  » sub-agent ${other} starts:`);
        return this.#aside([{ op: "line", text: `${head} ${excerpt(text, TASK_CHARS_MAX)}` }]);
      }
      case "announce": {
        // For the sub-agent itself it is what it has just said.
        if (mine && readAnnouncement(text, from) !== undefined) return [];
        const told = mine ? undefined : this.#announcement(text, from);
        if (told !== undefined) return told;
        // The turn's input in the transcript is the runtime's own sentence.
        if (!mine) remember(this.#received, `${HEADING.announce}.`);
        return [
          this.#dim(
            mine
              ? `  ↔ ${other} now tells its own people`
              : `  ↔ the conversation with ${other} is over; announcing`,
          ),
        ];
      }
      case "refused":
        // The tool's result says it.
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

  /** Messages of the transcript that have not been settled yet, oldest first. */
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
        return this.#aside(this.#lines(message));
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
    // What was half written when the gateway stopped was never kept, and will not be met again.
    this.#open = undefined;
    const end: Op[] = open === undefined ? [] : [{ op: "end" }, ...this.#held.splice(0)];
    return [...end, { op: "line", text: `${this.#speaker()}${safeText(text)}` }];
  }

  #grow(runId: string, text: string): Op[] {
    const whole = growingText(text);
    const open = this.#open;
    if (open?.runId !== runId) {
      // A late piece of what the transcript has shown in full already.
      if (safeText(this.#lastSettled).startsWith(whole)) return [];
      const ops = this.#settleOpen();
      this.#open = { runId, text: whole };
      return [...ops, { op: "grow", text: `${this.#speaker()}${whole}` }];
    }
    if (open.text.startsWith(whole)) return [];
    if (whole.startsWith(open.text)) {
      const more = whole.slice(open.text.length);
      open.text = whole;
      return [{ op: "grow", text: more }];
    }
    open.text = whole;
    return [{ op: "end" }, this.#dim("  (begins again)"), { op: "grow", text: `${this.#speaker()}${whole}` }];
  }

  /** A text of which no piece was seen, unless the transcript has told it already. */
  #whole(text: string): Op[] {
    if (text === "" || gist(text) === gist(this.#lastSettled)) return [];
    remember(this.#said, text);
    return [...this.#settleOpen(), { op: "line", text: `${this.#speaker()}${safeText(text)}` }];
  }

  #arrives(runId: string, from: string, text: string): void {
    this.#arriving.set(runId, { from, text });
    dropOldest(this.#arriving, REMEMBERED_MAX);
  }

  /** The message that is being written is whole now. Without text: as far as it got. */
  #finish(text: string): Op[] {
    const ops = text === "" || this.#open === undefined ? [] : this.#grow(this.#open.runId, text);
    return [...ops, ...this.#settleOpen()];
  }

  #settleOpen(): Op[] {
    if (this.#open === undefined) return [];
    remember(this.#said, this.#open.text);
    this.#open = undefined;
    return [{ op: "end" }, ...this.#held.splice(0)];
  }

  /** Not a part of the message that is being written: shown when that is whole. */
  #aside(ops: readonly Op[]): Op[] {
    if (this.#open === undefined) return [...ops];
    this.#held.push(...ops);
    return [];
  }

  /** A sub-agent's result, unless it was shown already. Undefined: the text is none. */
  #announcement(text: string, from?: string): Op[] | undefined {
    const announcement = readAnnouncement(text, from);
    if (announcement === undefined) return undefined;
    const { childKey, status, result, stats } = announcement;
    const mark = [status, result.slice(0, MARK_CHARS), stats].join("\n");
    if (this.#announced.has(mark)) return [];
    this.#noteAnnounced(mark, childKey);
    const lines = announcementLines(this.#paint, announcement);
    return this.#aside(lines.map((line) => ({ op: "line", text: line })));
  }

  /** The end of a job is worth a line only where nothing was announced. */
  #jobEnded(childKey: string, mine: boolean): Op[] {
    if (mine || [...this.#announced.values()].includes(childKey)) return [];
    this.#noteAnnounced(childKey, childKey);
    return this.#aside([this.#dim(`  « sub-agent ${safeLine(childKey)} has ended and announces nothing`)]);
  }

  #noteAnnounced(mark: string, childKey: string): void {
    this.#announced.set(mark, childKey);
    dropOldest(this.#announced, REMEMBERED_MAX);
  }

  #speaker(): string {
    return `${this.#paint.style("green", "agent:")} `;
  }

  #incoming(from: string, text: string): Op {
    return { op: "line", text: incomingLine(this.#paint, from, text) };
  }

  #dim(text: string): Op {
    return { op: "line", text: this.#paint.style("dim", text) };
  }

  #lines(message: Message): Op[] {
    return messageLines(this.#paint, message).map((text) => ({ op: "line", text }));
  }
}
