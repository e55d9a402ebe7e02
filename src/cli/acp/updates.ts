// Owns how what happens in a session is told to an editor: text as increments, thoughts, tool calls, history.
// UP1: the gateway tells the whole text so far, an editor wants what is new: nothing is told twice, and what
//      begins anew is a new message.
// UP2: a tool call that was told is told to be over.

import type { ContentBlock, SessionUpdate, ToolKind } from "@agentclientprotocol/sdk";
import type { ImageBlock, Message, TextBlock } from "../../core/message.ts";
import type { ToolData } from "../../gateway/protocol.ts";

/** Sends an update to the editor, after those before it. */
export type Tell = (update: SessionUpdate) => void;

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

/** A call on one line: its name, and the beginning of what it is called with. */
function titleOf(name: string, args: unknown): string {
  const { title } = (args ?? {}) as { title?: unknown };
  if (typeof title === "string" && title !== "") return title.slice(0, TITLE_MAX_CHARS).toWellFormed();
  const text = args === undefined ? "" : ` ${JSON.stringify(args)}`;
  return `${name}${text}`.slice(0, TITLE_MAX_CHARS).toWellFormed();
}

function callOf(toolCallId: string, name: string, args: unknown): SessionUpdate {
  const kind = KINDS.get(name) ?? "other";
  return {
    ...{ sessionUpdate: "tool_call", toolCallId, title: titleOf(name, args), kind, status: "in_progress" },
    ...(args === undefined ? {} : { rawInput: args }),
  };
}

function endOf(toolCallId: string, isError: boolean, result: string | undefined): SessionUpdate {
  const content =
    result === undefined || result === ""
      ? {}
      : { content: [{ type: "content" as const, content: { type: "text" as const, text: result } }] };
  return {
    ...{ sessionUpdate: "tool_call_update", toolCallId, status: isError ? "failed" : "completed" },
    ...content,
  };
}

/** One run, as an editor sees it. */
export class RunTeller {
  readonly #tell: Tell;
  readonly #newId: () => string;
  readonly #open = new Set<string>();
  #messageId: string;
  /** What was told of the message being written; undefined: the next text is another message's. */
  #told: string | undefined = "";

  constructor(tell: Tell, newId: () => string) {
    this.#tell = tell;
    this.#newId = newId;
    this.#messageId = newId();
  }

  /** The whole text so far of the message being written. */
  text(soFar: string): void {
    if (soFar === "") return;
    const told = this.#told;
    // Older than what was told, or the same from the beginning: it has to catch up first.
    if (told?.startsWith(soFar)) return;
    if (told === undefined || !soFar.startsWith(told)) {
      this.#messageId = this.#newId();
      this.#told = "";
    }
    this.#tell(chunk("agent_message_chunk", soFar.slice(this.#told?.length ?? 0), this.#messageId));
    this.#told = soFar;
  }

  thought(text: string): void {
    if (text !== "") this.#tell(chunk("agent_thought_chunk", text, this.#messageId));
  }

  tool(data: ToolData): void {
    const { phase, toolCallId, name, args, isError, result } = data;
    if (phase === "start") {
      this.#told = undefined;
      this.#open.add(toolCallId);
      this.#tell(callOf(toolCallId, name, args));
    } else if (this.#open.delete(toolCallId)) {
      this.#tell(endOf(toolCallId, isError === true, result));
    }
  }

  /** The run is over, with this text; what was missed of it on the way is told now. */
  end(text: string): void {
    for (const toolCallId of this.#open) this.#tell(endOf(toolCallId, true, undefined));
    this.#open.clear();
    this.text(text);
  }
}

/** Where a message came from, if not from the person at the editor. */
function originOf(message: Extract<Message, { role: "user" }>): string {
  const from = message.provenance;
  if (from === undefined) return "";
  return from.kind === "inter_session" ? `[from session ${from.sourceSessionKey}]\n` : `[${from.kind}]\n`;
}

/** What a message says; of a picture, that there is one. */
function plainText(content: readonly (TextBlock | ImageBlock)[]): string {
  return content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n");
}

/** A stored message, told again. */
export function replay(message: Message, tell: Tell): void {
  if (message.role === "toolResult") {
    tell(endOf(message.toolCallId, message.isError, plainText(message.content)));
    return;
  }
  if (message.role === "user") {
    const text = `${originOf(message)}${plainText(message.content)}`;
    const content: ContentBlock = { type: "text", text };
    tell({ sessionUpdate: "user_message_chunk", content, messageId: message.id });
    return;
  }
  for (const block of message.content) {
    if (block.type === "text") tell(chunk("agent_message_chunk", block.text, message.id));
    else if (block.type === "thinking") tell(chunk("agent_thought_chunk", block.thinking, message.id));
    else tell(callOf(block.id, block.name, block.arguments));
  }
}

/** What a prompt says, as one message with its pictures. */
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
          : `[${block.resource.uri}: not a text]`;
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
