// Converts events of a session to updates for an editor: text as increments, thoughts, tool calls, history.
// The gateway sends the whole text so far; the editor gets only the new part. If the text starts again, it
// becomes a new message. Each tool call that was sent to the editor gets a completion, too.

import type { ContentBlock, SessionUpdate, ToolKind } from "@agentclientprotocol/sdk/unstable";
import type { ToolData } from "../../../contract/events.ts";
import { fieldsOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import type { ImageBlock, Message, TextBlock } from "../../../core/shapes/message.ts";
import { head } from "../../../core/text/cut.ts";

/** Sends an update to the editor, in order. */
export type SendUpdate = (update: SessionUpdate) => void;

const TITLE_MAX_CHARS = 120;
const KINDS: ReadonlyMap<string, ToolKind> = new Map([
  ...(["read", "edit", "search", "delete", "fetch", "move", "execute"] as const).map(
    (kind) => [kind, kind] as const,
  ),
  ...([
    ["write", "edit"],
    ["exec", "execute"],
    ["sessions_search", "search"],
  ] as const),
]);

function chunk(sessionUpdate: "agent_message_chunk" | "agent_thought_chunk", text: string, id: string) {
  return { sessionUpdate, content: { type: "text", text }, messageId: id } as const;
}

/** Formats a tool call on one line: its name and the beginning of its arguments. */
function titleOf(name: string, args: unknown): string {
  const { title } = (args ?? {}) as { title?: unknown };
  if (typeof title === "string" && title !== "") return head(title, TITLE_MAX_CHARS);
  const text = args === undefined ? "" : ` ${JSON.stringify(args)}`;
  return head(`${name}${text}`, TITLE_MAX_CHARS);
}

function callOf(toolCallId: string, name: string, args: unknown): SessionUpdate {
  const kind = KINDS.get(name) ?? "other";
  return {
    sessionUpdate: "tool_call",
    toolCallId,
    title: titleOf(name, args),
    kind,
    status: "in_progress",
    ...optional({ rawInput: args }),
  };
}

function endOf(toolCallId: string, isError: boolean, result: string | undefined): SessionUpdate {
  const content =
    result === undefined || result === ""
      ? {}
      : { content: [{ type: "content" as const, content: { type: "text" as const, text: result } }] };
  return {
    sessionUpdate: "tool_call_update",
    toolCallId,
    status: isError ? "failed" : "completed",
    ...content,
  };
}

export class RunUpdates {
  readonly #send: SendUpdate;
  readonly #newId: () => string;
  /** The calls in progress, with their arguments. */
  readonly #open = new Map<string, unknown>();
  #messageId: string;
  /** The part of the growing message that was sent. Undefined if the next text starts a new message. */
  #sent: string | undefined = "";

  constructor(send: SendUpdate, newId: () => string) {
    this.#send = send;
    this.#newId = newId;
    this.#messageId = newId();
  }

  /** Takes the whole text of the growing message so far, and sends the part that is new. */
  text(soFar: string): void {
    if (soFar === "") return;
    const sent = this.#sent;
    // Ignore a late update, and a text that was restarted and is still shorter than the sent part.
    if (sent?.startsWith(soFar)) return;
    if (sent === undefined || !soFar.startsWith(sent)) {
      this.#messageId = this.#newId();
      this.#sent = "";
    }
    this.#send(chunk("agent_message_chunk", soFar.slice(this.#sent?.length ?? 0), this.#messageId));
    this.#sent = soFar;
  }

  thought(text: string): void {
    if (text !== "") this.#send(chunk("agent_thought_chunk", text, this.#messageId));
  }

  tool(data: ToolData): void {
    const { phase, toolCallId, name, args, isError, result } = data;
    if (phase === "start") {
      this.#sent = undefined;
      this.#open.set(toolCallId, args);
      this.#send(callOf(toolCallId, name, args));
    } else if (this.#open.delete(toolCallId)) {
      this.#send(endOf(toolCallId, isError === true, result));
    }
  }

  /** Returns the id of the call in progress with this command; without one, of the only call. */
  callOf(command: string | undefined): string | undefined {
    const calls = [...this.#open].filter(
      ([, args]) => command === undefined || fieldsOf(args).command === command,
    );
    return command !== undefined || calls.length === 1 ? calls[0]?.[0] : undefined;
  }

  /** Ends the run's updates: reports open tool calls as failed, and sends the rest of the final text. */
  end(text: string): void {
    for (const toolCallId of this.#open.keys()) this.#send(endOf(toolCallId, true, undefined));
    this.#open.clear();
    this.text(text);
  }
}

/** Returns the origin of a message as a prefix; empty if it came from the user. */
function originOf(message: Extract<Message, { role: "user" }>): string {
  const from = message.provenance;
  if (from === undefined) return "";
  return from.kind === "inter_session" ? `[from session ${from.sourceSessionKey}]\n` : `[${from.kind}]\n`;
}

/** Returns the text of a message, with `[image]` for each image. */
function plainText(content: readonly (TextBlock | ImageBlock)[]): string {
  return content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n");
}

/** Sends a message of the transcript to the editor, as one or more updates. */
export function replay(message: Message, send: SendUpdate): void {
  if (message.role === "toolResult") {
    send(endOf(message.toolCallId, message.isError, plainText(message.content)));
    return;
  }
  if (message.role === "user") {
    const text = `${originOf(message)}${plainText(message.content)}`;
    const content: ContentBlock = { type: "text", text };
    send({ sessionUpdate: "user_message_chunk", content, messageId: message.id });
    return;
  }
  for (const block of message.content) {
    if (block.type === "text") send(chunk("agent_message_chunk", block.text, message.id));
    else if (block.type === "thinking") send(chunk("agent_thought_chunk", block.thinking, message.id));
    else send(callOf(block.id, block.name, block.arguments));
  }
}

/** Converts the blocks of a prompt to one message, with images as attachments. */
export function promptOf(blocks: readonly ContentBlock[]): {
  message: string;
  attachments: { content: string; mimeType: string }[];
} {
  const attachments: { content: string; mimeType: string }[] = [];
  const parts = blocks.map((block): string => {
    switch (block.type) {
      case "text":
        return block.text;
      case "resource_link":
        return `[${block.name}](${block.uri})`;
      case "resource":
        return "text" in block.resource
          ? `${block.resource.uri}:\n\`\`\`\n${block.resource.text}\n\`\`\``
          : `[${block.resource.uri}: not text]`;
      case "image":
        attachments.push({ content: block.data, mimeType: block.mimeType });
        return "";
      default:
        return `[${block.type}: not supported]`;
    }
  });
  const message = parts.filter((part) => part !== "").join("\n");
  return { message: message === "" && attachments.length > 0 ? "(a picture)" : message, attachments };
}
