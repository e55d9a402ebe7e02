// Collects the work of a sub-agent as plain text: its task, its texts, and a line for each of its calls.
// Thoughts and results of calls are left out. The length is limited; the end says if something was left out.

import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { head } from "../../../core/text/cut.ts";

const TEXT_MAX_CHARS = 32 * 1024;
const PARTS_MAX = 500;
const TITLE_MAX_CHARS = 300;

interface Part {
  readonly key: string;
  text: string;
  /** Its call has failed, or its message comes from the sub-agent. */
  isFailed?: boolean;
  isOwn?: boolean;
}

export class WorkLog {
  readonly #parts: Part[] = [];
  /** Titles of calls that an earlier log shows. */
  readonly #before: ReadonlyMap<string, string>;
  #chars = 0;
  #isCut = false;

  constructor(before: ReadonlyMap<string, string> = new Map()) {
    this.#before = before;
  }

  /** Returns an empty log for the work that follows. */
  next(): WorkLog {
    const calls = this.#parts.filter(({ key }) => key.startsWith("call "));
    return new WorkLog(new Map(calls.map(({ key, text }) => [key, text])));
  }

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  /** `sessionId`: the sub-agent's session, if it has one. Its own messages to other sessions are left out. */
  add(update: SessionUpdate, sessionId?: string): void {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        if (update.content.type === "text")
          this.#write(`text ${update.messageId ?? ""}`, update.content.text, this.#parts.at(-1));
        break;
      case "session_message":
      case "session_message_chunk": {
        const key = `message ${update.messageId}`;
        const blocks = [update.content ?? []].flat();
        const text = blocks.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
        const known = this.#parts.find((part) => part.key === key);
        if ("senderSessionId" in update && blocks.length > 0) this.#clear(known);
        const part = this.#write(key, text, known);
        if (part !== undefined && "senderSessionId" in update)
          part.isOwn = update.senderSessionId === sessionId;
        break;
      }
      case "tool_call":
      case "tool_call_update": {
        const key = `call ${update.toolCallId}`;
        const known = this.#parts.find((part) => part.key === key);
        const before = this.#before.get(key);
        if (known === undefined && before !== undefined && update.status !== "failed") break;
        const title = head(update.title ?? known?.text ?? before ?? "a tool call", TITLE_MAX_CHARS);
        this.#clear(known);
        const part = this.#write(key, title, known);
        if (part !== undefined && update.status === "failed") part.isFailed = true;
        break;
      }
      default:
        break;
    }
  }

  #clear(part: Part | undefined): void {
    if (part === undefined) return;
    this.#chars -= part.text.length;
    part.text = "";
  }

  /** Appends to this part if it has the key, else to a new one. */
  #write(key: string, text: string, to: Part | undefined): Part | undefined {
    const room = TEXT_MAX_CHARS - this.#chars;
    const isKnown = to?.key === key;
    if (text === "" && !isKnown) return undefined;
    if (room <= 0 || (!isKnown && this.#parts.length >= PARTS_MAX)) {
      this.#isCut = true;
      return isKnown ? to : undefined;
    }
    const part = isKnown ? to : { key, text: "" };
    if (!isKnown) this.#parts.push(part);
    const written = head(text, room);
    part.text += written;
    this.#isCut ||= text.length > room;
    this.#chars += written.length;
    return part;
  }

  get text(): string {
    let written = "";
    let before = "";
    for (const { key, text, isFailed, isOwn } of this.#parts) {
      if (isOwn === true || text === "") continue;
      const [kind = ""] = key.split(" ");
      if (written !== "") written += kind === "call" && before === "call" ? "\n" : "\n\n";
      if (kind === "call") written += `• ${text}${isFailed === true ? " (failed)" : ""}`;
      else written += kind === "message" ? text.replaceAll(/^/gm, "> ") : text;
      before = kind;
    }
    return this.#isCut ? `${written}\n[cut]` : written;
  }
}
