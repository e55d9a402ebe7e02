// Implements `parley sessions export`: prints a whole conversation, with credentials redacted.

import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { RequestParams } from "../../../contract/client/types.ts";
import type { HistoryPage } from "../../../contract/methods/talk.ts";
import { optional } from "../../../core/optional.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { textOf } from "../../../core/shapes/message.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import type { Link, Reply } from "../../gateway-link.ts";
import { count } from "../../layout.ts";
import { withSession } from "../../session-name.ts";
import { chooseConversation } from "./earlier.ts";

interface ExportOptions {
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

/** Writes a file that only the user can read. Never replaces a file. */
async function writeNew(cli: Cli, file: string, lines: readonly string[]): Promise<Result<void>> {
  try {
    const path = resolve(cli.parts.folder, file);
    return ok(await writeFile(path, lines.map((line) => `${line}\n`).join(""), { flag: "wx", mode: 0o600 }));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return fail("file_problem", `${file} exists. Name a new file, or remove it.`);
    return fail("file_problem", `${file} could not be written: ${message}`);
  }
}

export async function exportSession(
  cli: Cli,
  args: readonly string[],
  options: ExportOptions,
): Promise<number> {
  return withSession(cli, args[0] ?? "", async (link, sessionKey) => {
    const chosen = await chooseConversation(link, sessionKey, options.earlier);
    if (!chosen.ok) return cli.fail(chosen);
    const read = await readAll(link, { sessionKey, ...chosen.value });
    if (!read.ok) return cli.fail(read);
    const lines = read.value.flatMap((message) =>
      options.format === "jsonl" ? [JSON.stringify(message)] : markdownOf(message),
    );
    const { output } = options;
    if (output === undefined) for (const line of lines) cli.line(line);
    else {
      const written = await writeNew(cli, output, lines);
      if (!written.ok) return cli.fail(written);
      cli.line(safeLine(`Wrote ${count(read.value.length, "message")} to ${output}.`));
    }
    cli.document({ sessionKey, ...chosen.value, ...optional({ output }), messages: read.value });
    return EXIT.done;
  });
}
