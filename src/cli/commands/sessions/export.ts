// Implements `parley sessions export`: prints a whole conversation, with credentials redacted.

import type { RequestParams } from "../../../contract/client/types.ts";
import type { HistoryPage } from "../../../contract/methods/talk.ts";
import { optional } from "../../../core/optional.ts";
import { textOf } from "../../../core/shapes/message.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { type Link, type Reply, withLink } from "../../gateway-link.ts";
import { chooseConversation, noSession } from "./earlier.ts";

interface ExportOptions {
  readonly earlier?: string;
  readonly format: "jsonl" | "markdown";
}

const PAGE_MESSAGES = 1000;
/** Maximum number of pages. It ends the loop if a gateway never returns a last page. */
const PAGES_MAX = 100_000;

type Messages = HistoryPage["messages"];

/** Reads all messages of a conversation, oldest first. Returns undefined if there is no such conversation. */
async function readAll(
  link: Link,
  params: RequestParams<"chat.history">,
): Promise<Reply<Messages | undefined>> {
  const pages: Messages[] = [];
  let before: string | undefined;
  for (let count = 0; count < PAGES_MAX; count += 1) {
    const page: Reply<HistoryPage> = await link.request("chat.history", {
      ...params,
      ...optional({ before }),
      limit: PAGE_MESSAGES,
    });
    if (!page.ok) return page;
    if (page.value.sessionId === undefined) return { ok: true, value: undefined };
    pages.unshift(page.value.messages);
    before = page.value.nextBefore;
    if (before === undefined) break;
  }
  return { ok: true, value: pages.flat() };
}

/** Formats the text of a message as Markdown, without tool calls and their results. */
function markdownOf(message: Messages[number]): string[] {
  const text = textOf(message).trim();
  if (message.role === "toolResult" || text === "") return [];
  const who = message.role === "user" ? "User" : "Assistant";
  return [`## ${who}, ${new Date(message.timestamp).toISOString()}`, "", text, ""];
}

export async function exportSession(
  cli: Cli,
  args: readonly string[],
  options: ExportOptions,
): Promise<number> {
  const [sessionKey = ""] = args;
  return withLink(cli, async (link) => {
    const chosen = await chooseConversation(link, sessionKey, options.earlier);
    if (!chosen.ok) return cli.fail(chosen);
    const read = await readAll(link, { sessionKey, ...chosen.value });
    if (!read.ok) return cli.fail(read);
    if (read.value === undefined) return cli.fail(noSession(sessionKey));
    for (const message of read.value) {
      const lines = options.format === "jsonl" ? [JSON.stringify(message)] : markdownOf(message);
      for (const line of lines) cli.line(line);
    }
    cli.document({ sessionKey, ...chosen.value, messages: read.value });
    return EXIT.done;
  });
}
