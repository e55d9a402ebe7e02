// Collects the work of a sub-agent as plain text: its task, its texts, and a line for each of its calls.
// Thoughts and results of calls are left out. The length is limited; the end says if something was left out.

import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { head } from "../../../core/text/cut.ts";

const TEXT_MAX_CHARS = 32 * 1024;
const PARTS_MAX = 500;
const ID_MAX_CHARS = 200;
const TITLE_MAX_CHARS = 300;
const MORE = "\n\n[More was left out.]";

/** Returns whether an id would take too much memory. Its session, call or message is then ignored. */
export const isTooLong = (id: string | null | undefined): boolean => (id?.length ?? 0) > ID_MAX_CHARS;

interface Part {
  readonly kind: "task" | "text" | "call";
  readonly id: string;
  text: string;
  isFailed?: boolean;
}

function lineOf({ kind, text, isFailed }: Part): string {
  if (kind === "text") return text;
  return kind === "task" ? text.replaceAll(/^/gm, "> ") : `• ${text}${isFailed === true ? " (failed)" : ""}`;
}

export class WorkLog {
  readonly #parts: Part[] = [];
  #chars = 0;
  #isCut = false;

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  /** `sessionId`: the sub-agent's session, if it has one. Its own messages to other sessions are left out. */
  add(update: SessionUpdate, sessionId?: string): void {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        if (update.content.type === "text") this.#write("text", update.messageId ?? "", update.content.text);
        break;
      case "session_message": {
        const texts = (update.content ?? []).map((block) => (block.type === "text" ? block.text : ""));
        if (update.senderSessionId !== sessionId) this.#write("task", update.messageId, texts.join("\n"));
        break;
      }
      case "tool_call":
      case "tool_call_update": {
        const title = head(update.title ?? "", TITLE_MAX_CHARS);
        const isIt = ({ kind, id }: Part) => kind === "call" && id === update.toolCallId;
        const part = this.#parts.find(isIt) ?? this.#write("call", update.toolCallId, title);
        if (part !== undefined && title !== "") part.text = title;
        if (part !== undefined && update.status === "failed") part.isFailed = true;
        break;
      }
      default:
        break;
    }
  }

  #write(kind: Part["kind"], id: string, text: string): Part | undefined {
    const written = head(text, Math.max(0, TEXT_MAX_CHARS - this.#chars));
    this.#isCut ||= written.length < text.length || this.#parts.length >= PARTS_MAX;
    if (written === "" || this.#parts.length >= PARTS_MAX || isTooLong(id)) return undefined;
    this.#chars += written.length;
    const last = this.#parts.at(-1);
    if (kind === "text" && last?.kind === kind && last.id === id) last.text += written;
    else this.#parts.push({ kind, id, text: written });
    return this.#parts.at(-1);
  }

  get text(): string {
    const lines = this.#parts.map((part, index) => {
      const before = this.#parts[index - 1]?.kind;
      const gap = before === undefined ? "" : before === "call" && part.kind === "call" ? "\n" : "\n\n";
      return gap + lineOf(part);
    });
    return lines.join("") + (this.#isCut ? MORE : "");
  }
}
