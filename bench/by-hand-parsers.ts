// Measures the processor time of each function that reads text of strangers on the gateway's thread, with
// hostile inputs of the maximum size. Prints the worst input of each: `node bench/by-hand-parsers.ts [NAME]`.
// A time over 250 ms needs a limit or a better algorithm.

import { opinion } from "../src/agent/offline/phrases.ts";
import { plainText, readMarkdown } from "../src/channels/markdown.ts";
import { composeAnnouncement } from "../src/core/rules/announcement.ts";
import { asksPerson, firstLine, questionOf } from "../src/core/rules/attention/groups.ts";
import { announceContext } from "../src/core/rules/turn-rules.ts";
import { splitHidden } from "../src/core/text/hidden-text.ts";
import { cleanName, foldText, partText } from "../src/core/text/inbound-text.ts";
import { json5Places } from "../src/core/text/json5-places.ts";
import { quoteRuntimeLabels } from "../src/core/text/look-alike.ts";
import { Redactor } from "../src/core/text/redact/redact.ts";
import { safeLine } from "../src/core/text/safe-text.ts";
import { splitText } from "../src/core/text/text-split.ts";
import { titleIn } from "../src/core/text/title.ts";
import { renderTemplate } from "../src/features/hooks/template.ts";
import { formatText } from "../src/features/whatsapp/format.ts";
import { vectorsOf } from "../src/store/queries/transcripts/search-lexemes.ts";
import { excerptOf, textParts, wordsOf } from "../src/store/queries/transcripts/search-text.ts";
import { frontMatter } from "../src/tools/guidance/front-matter.ts";
import { readDefinitions } from "../src/tools/mcp/definitions.ts";
import { resultOf } from "../src/tools/mcp/result.ts";

const [only = ""] = process.argv.slice(2);
const MIB = 1024 * 1024;
const SMALL_CHARS = 16_384;
/** If the small input takes longer, the time for the maximum size is only estimated. */
const SMALL_MAX_MS = 100;

const redactor = new Redactor([]);
const party = (key: string) => ({ key, channel: "telegram" });
const stats = {
  runtimeMs: 1,
  inputTokens: 1,
  outputTokens: 1,
  totalTokens: 2,
  sessionKey: "k",
  sessionId: "s",
};
const server = { name: "bad", tools: [], reach: { kind: "stdio", command: "x", args: [], env: {} } };

/** Each function with the maximum number of characters that it gets. */
const READERS: readonly (readonly [name: string, charsMax: number, read: (text: string) => unknown])[] = [
  ["redaction", MIB, (text) => redactor.mask(text)],
  ["redaction of a line", MIB, (text) => redactor.line(text, 60)],
  ["labels", MIB, quoteRuntimeLabels],
  ["a shown line", MIB, safeLine],
  ["a message", MIB, (text) => partText({ text, notes: [] })],
  ["a sender's name", MIB, cleanName],
  ["a folded text", MIB, foldText],
  ["hidden text of a model", MIB, splitHidden],
  ["a title", MIB, titleIn],
  ["parts of an answer", MIB, (text) => splitText(text, 4_000)],
  ["Markdown", 40_000, (text) => plainText(readMarkdown(text))],
  ["Markdown for WhatsApp", 40_000, formatText],
  ["an announcement", MIB, (result) => composeAnnouncement({ status: "ok", result, stats })],
  ["a question", MIB, (text) => [asksPerson(text), questionOf(text), firstLine(text)]],
  [
    "the context of a conversation",
    MIB,
    (text) =>
      announceContext({
        self: party("a"),
        requester: party("b"),
        request: text,
        round1Reply: text,
        latestReply: text,
      }),
  ],
  ["the search index", MIB, (text) => [...textParts(text)]],
  ["the search index of PostgreSQL", MIB, (text) => vectorsOf(text, [])],
  ["a search query", MIB, wordsOf],
  ["a search result", MIB, (text) => excerptOf(text, ["a", "word"])],
  ["a skill's front matter", 64 * 1024, (text) => frontMatter(`---\nname: ${text}\n---\n`)],
  ["the configuration page", 128 * 1024, json5Places],
  ["a web hook", MIB, (text) => renderTemplate("{{body.a}} {{body.b}}", { body: { a: text, b: [text] } })],
  [
    "a result of MCP",
    24 * MIB,
    (text) =>
      resultOf({ content: [{ type: "text", text }], structuredContent: { text } }, 65_536, (one) => one),
  ],
  [
    "a list of MCP tools",
    MIB,
    (text) => {
      const names = text.split("").map((sign, at) => [`${sign}${at}`, { $ref: "#" }]);
      const inputSchema = { type: "object", properties: Object.fromEntries(names), description: text };
      return readDefinitions(server as never, [{ name: text.slice(0, 256), inputSchema }]);
    },
  ],
  ["the offline model", MIB, opinion],
];

const UNITS = [
  ..." \t\n\r\"'`*_~[](){}<>#|\\/.,:;=-+!?@$%^&0aA\u2028\u0301\u200b\u{1f642}\u4e2d",
  ...[
    "a ",
    "a\n",
    " \n",
    "\n\n",
    "[from ",
    "[from a]\n",
    "[\n",
    "<a ",
    "<think>",
    "</think>",
    "</",
    "<think",
  ],
  ...["a.", "](", "[a](", "**", "**a", "* ", "`a", "```\n", "~~~\n", "__a", "{{", '{"a":', "a:", "a=", "--"],
  ...["token=", "password: ", "Bearer ", "sk-", "eyJa.", "a@b.", "-----BEGIN PRIVATE KEY-----\n", "agent:a:"],
  ...["http://a", "https://a:b@", "| a |\n", "- a\n", "> ", "    a\n", "1. ", "Result: a\n", "&#x", "aB1_"],
];

function measureMs(read: (text: string) => unknown, text: string): number {
  const begun = process.cpuUsage();
  read(text);
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1_000;
}

/** Returns the time for the maximum size, or an estimate if that would take too long. */
function timeOf(read: (text: string) => unknown, charsMax: number, unit: string): number {
  const hostile = (chars: number) => `a${unit.repeat(Math.ceil(chars / unit.length))}\u0001`;
  const small = hostile(Math.min(SMALL_CHARS, charsMax));
  // The first call also compiles the function.
  const smallMs = Math.min(measureMs(read, small), measureMs(read, small));
  // A function this slow is quadratic, so its time grows with the square of the size.
  return smallMs > SMALL_MAX_MS
    ? smallMs * (charsMax / SMALL_CHARS) ** 2
    : measureMs(read, hostile(charsMax));
}

for (const [name, charsMax, read] of READERS.filter((reader) => reader[0].includes(only))) {
  let worst = { ms: 0, unit: "" };
  for (const unit of UNITS) {
    const ms = timeOf(read, charsMax, unit);
    if (ms > worst.ms) worst = { ms, unit };
  }
  const mark = worst.ms > 250 ? "!" : " ";
  process.stdout.write(
    `${mark} ${worst.ms.toFixed(0).padStart(7)} ms  ${name}: ${JSON.stringify(worst.unit)}\n`,
  );
}
