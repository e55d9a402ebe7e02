// Implements `parley sessions export`: prints a whole conversation, with credentials redacted.

import type { RequestParams } from "../../../contract/client/types.ts";
import type { HistoryPage } from "../../../contract/methods/talk.ts";
import { optional } from "../../../core/optional.ts";
import { textOf } from "../../../core/shapes/message.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { writeText } from "../../files.ts";
import { type Link, type Reply, withLink } from "../../gateway-link.ts";
import { count } from "../../layout.ts";
import { findConversation } from "../../session-name.ts";

interface ExportOptions {
  readonly session: string;
  readonly earlier?: string;
  readonly output?: string;
  readonly format: "jsonl" | "markdown";
}

const PAGE_MESSAGES = 1000;
/** Maximum number of pages. It ends the loop if a gateway never returns a last page. */
const PAGES_MAX = 100_000;

type Messages = HistoryPage["messages"];

/** Reads all messages of a conversation, oldest first. */
async function readAll(link: Link, params: RequestParams<"chat.history">): Promise<Reply<Messages>> {
  const pages: Messages[] = [];
  let before: string | undefined;
  for (let count = 0; count < PAGES_MAX; count += 1) {
    const page: Reply<HistoryPage> = await link.request("chat.history", {
      ...params,
      ...optional({ before }),
      limit: PAGE_MESSAGES,
    });
    if (!page.ok) return page;
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

export function exportSession(cli: Cli, options: ExportOptions): Promise<number> {
  return withLink(cli, async (link) => {
    const chosen = await findConversation(link, options.session, options.earlier);
    if (!chosen.ok) return cli.fail(chosen);
    const read = await readAll(link, chosen.value);
    if (!read.ok) return cli.fail(read);
    const lines = read.value.flatMap((message) =>
      options.format === "jsonl" ? [JSON.stringify(message)] : markdownOf(message),
    );
    const { output } = options;
    if (output === undefined) for (const line of lines) cli.line(line);
    else {
      const text = lines.map((line) => `${line}\n`).join("");
      const written = await writeText(
        cli.parts.folder,
        output,
        text,
        "exists. Name a new file, or remove it.",
      );
      if (!written.ok) return cli.fail(written);
      cli.say(`Wrote ${count(read.value.length, "message")} to ${output}.`);
    }
    cli.document({ ...chosen.value, ...optional({ output }), messages: read.value });
    return EXIT.done;
  });
}
