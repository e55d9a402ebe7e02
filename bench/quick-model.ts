// Runs as a separate process: a model server that answers at once, in the streaming format of OpenAI's chat
// completions. Prints its address; exits when its standard input closes. It does as little as possible,
// because it shares the processors with the measured gateway.
//
// The request determines the answer:
//   call NAME {…}   in the last message of a person: calls that tool, then answers "done"
//   calls N B       N calls of the tool `write` in one answer, each with B bytes of text, then "done"
//   stream N R      N tokens of 10 bytes, R per second; R 0: as fast as they are read
//   other messages  "done"
// POST /hold holds all answers back. POST /release sends them, and all later ones at once.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const chunk = (delta: object, finish: string | null, more: object = {}): string =>
  `data: ${JSON.stringify({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "quick",
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  })}\n\n`;

const usage = { usage: { prompt_tokens: 100, completion_tokens: 1, total_tokens: 101 } };
const TEXT =
  chunk({ role: "assistant", content: "do" }, null) +
  chunk({ content: "ne" }, null) +
  chunk({}, "stop", usage) +
  "data: [DONE]\n\n";

/** Writes a call of the tool `name`; `given` is its arguments as JSON. */
function calling(name: string, given: string): string {
  const call = { index: 0, id: `call_${++calls}`, type: "function", function: { name, arguments: given } };
  return `${chunk({ role: "assistant", tool_calls: [call] }, "tool_calls", usage)}data: [DONE]\n\n`;
}

let calls = 0;

interface Said {
  readonly role: string;
  readonly content?: string | readonly { readonly text?: string }[];
}

function textOf({ content = "" }: Said): string {
  return typeof content === "string" ? content : content.map(({ text = "" }) => text).join("\n");
}

/** Writes many calls that write the same file, with the text in pieces of 1,000 bytes. */
function writing(count: number, bytes: number): string {
  const words = "word ".repeat(Math.ceil(bytes / 5)).slice(0, bytes);
  const pieces: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const id = `call_${++calls}`;
    const call = (given: string, more: object = {}) => {
      const one = {
        index,
        ...more,
        function: { ...("id" in more ? { name: "write" } : {}), arguments: given },
      };
      pieces.push(chunk({ tool_calls: [one] }, null));
    };
    call('{"path":"written.txt","content":"', { id, type: "function" });
    for (let at = 0; at < bytes; at += 1_000) call(words.slice(at, at + 1_000));
    call('"}');
  }
  return `${pieces.join("")}${chunk({}, "tool_calls", usage)}data: [DONE]\n\n`;
}

function answerTo(body: string): string {
  // Most requests ask for no tool call. Answer them without parsing their long text.
  if (!/calls? (?:sessions_|exec|\d)/.test(body)) return TEXT;
  const { messages } = JSON.parse(body) as { messages: readonly Said[] };
  const last = messages.at(-1);
  const said = last?.role === "user" ? textOf(last) : "";
  const many = /^calls (\d+) (\d+)$/m.exec(said);
  if (many !== null) return writing(Number(many[1]), Number(many[2]));
  const asked = /^call (\w+) (\{.*\})$/m.exec(said);
  return asked === null ? TEXT : calling(asked[1] ?? "", asked[2] ?? "{}");
}

/**
 * Number of characters at the end of a request that are searched for `stream`. They contain the last message,
 * because only the tools follow it.
 */
const STREAM_WITHIN_CHARS = 100_000;
const STREAM_STEP_MS = 10;
const TOKENS_AT_ONCE = 1_000;

/** Writes tokens at this rate, each as one event. If several tokens are due, writes their events at once. */
function streamTokens(outgoing: ServerResponse, count: number, perSecond: number): void {
  outgoing.writeHead(200, { "content-type": "text/event-stream" });
  const begun = performance.now();
  let written = 0;
  const step = (): void => {
    if (outgoing.destroyed) return;
    const due =
      perSecond === 0 ? written + TOKENS_AT_ONCE : ((performance.now() - begun) * perSecond) / 1_000;
    let piece = "";
    for (; written < Math.min(count, due); written += 1) {
      piece += chunk(
        { content: `${written % 10 === 0 ? "\n" : " "}word${String(written % 100_000).padStart(5, "0")}` },
        null,
      );
    }
    const isTaken = piece === "" || outgoing.write(piece);
    if (written >= count) outgoing.end(`${chunk({}, "stop", usage)}data: [DONE]\n\n`);
    else if (perSecond > 0) setTimeout(step, STREAM_STEP_MS);
    else if (isTaken) setImmediate(step);
    else outgoing.once("drain", step);
  };
  step();
}

/** Functions that send the held answers. Undefined if answers are not held. */
let held: (() => void)[] | undefined;

function answer(path: string, outgoing: ServerResponse, body: string): void {
  if (path.endsWith("/hold") || path.endsWith("/release")) {
    const kept = held ?? [];
    held = path.endsWith("/hold") ? kept : undefined;
    if (held === undefined) for (const tell of kept) tell();
    outgoing.end();
    return;
  }
  const streamed = [...body.slice(-STREAM_WITHIN_CHARS).matchAll(/stream (\d+) (\d+)/g)].at(-1);
  if (streamed !== undefined) {
    streamTokens(outgoing, Number(streamed[1]), Number(streamed[2]));
    return;
  }
  const tell = (): void => {
    outgoing.writeHead(200, { "content-type": "text/event-stream" }).end(answerTo(body));
  };
  if (held === undefined) tell();
  else held.push(tell);
}

const server = createServer((incoming, outgoing) => {
  const pieces: Buffer[] = [];
  incoming.on("data", (piece: Buffer) => pieces.push(piece));
  incoming.on("end", () => answer(incoming.url ?? "", outgoing, Buffer.concat(pieces).toString()));
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
});
process.stdin.on("close", () => process.exit(0)).resume();
