// Streams of model servers, damaged on their way: cut, shuffled, repeated, and split at any byte. The streams
// are those of all dialects, so they have the events of all four APIs.

import fc from "fast-check";
import { type ModelOutcome, resolveModel } from "../../../src/agent/model/model.ts";
import { openModelPort } from "../../../src/agent/model/port.ts";
import { fieldsOf, isObject, jsonOf } from "../../../src/core/json.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import { ANSWER_LIMITS } from "../../../src/core/shapes/settings/settings.ts";
import type { Dialect, Json } from "../../kit/dialects/dialect.ts";
import { DIALECTS } from "../../kit/dialects/dialects.ts";
import { fastWorld, PROVIDER } from "../../kit/dialects/house.ts";
import { listOf } from "../../kit/dialects/rules.ts";
import { streamOf } from "../../kit/dialects/server.ts";
import type { Speech } from "../../kit/dialects/speech.ts";
import { collectTexts } from "../../kit/live-text.ts";
import { serveHttp } from "../../kit/loopback.ts";
import { TEST_MODEL } from "../../kit/model-server/server.ts";
import { type FuzzTarget, must, shown } from "../target.ts";

/** Time of model calls passes faster by this factor, because a stream may stay open. */
const SPEED = 300;
/** Time without a byte after which a call fails: short if the server keeps the connection open. */
const IDLE_SECONDS = { open: 300, closed: 6_000 };
/** A call that has not settled after this time hangs. */
const SETTLED_MAX_MS = 20_000;
const SPLITS_MAX = 12;

interface Edit {
  readonly kind: "cut" | "swap" | "repeat" | "drop" | "line" | "byte" | "none";
  /** Places of the edit, from 0 to 1 of the stream. */
  readonly from: number;
  readonly to: number;
}

interface Input {
  /** Id of the dialect. */
  readonly dialect: string;
  readonly words: number;
  readonly thinks: boolean;
  readonly calls: number;
  readonly edits: readonly Edit[];
  /** Places at which the bytes are split, from 0 to 1. */
  readonly splits: readonly number[];
  readonly staysOpen: boolean;
}

const place = fc.double({ min: 0, max: 1, noNaN: true });
const inputs: fc.Arbitrary<Input> = fc.record({
  dialect: fc.constantFrom(...DIALECTS.map(({ id }) => id)),
  words: fc.nat({ max: 12 }),
  thinks: fc.boolean(),
  calls: fc.nat({ max: 2 }),
  edits: fc.array(
    fc.record({
      kind: fc.constantFrom("cut", "swap", "swap", "repeat", "drop", "line", "byte", "none"),
      from: place,
      to: place,
    }),
    { maxLength: 4 },
  ),
  splits: fc.array(place, { maxLength: SPLITS_MAX }),
  staysOpen: fc.nat({ max: 9 }).map((one) => one === 0),
});

const word = (at: number): string => `[w${at}ü🌱]`;

function speechFor({ words, thinks, calls }: Input): Speech {
  return {
    text: Array.from({ length: words }, (_, at) => word(at)).join(" "),
    ...(thinks ? { thinking: "a thought of the model" } : {}),
    calls: Array.from({ length: calls }, (_, at) => ({ name: "echo", arguments: { limit: at } })),
  };
}

const eventsIn = (stream: string): string[] => stream.split(/(?<=\n\n|\r\n\r\n)/);

/** Applies an edit to the events, the lines or the bytes of a stream. */
function edited(stream: Buffer, { kind, from, to }: Edit): Buffer {
  const at = Math.floor(from * stream.length);
  if (kind === "none") return stream;
  if (kind === "cut") return stream.subarray(0, at);
  if (kind === "byte") {
    const copy = Buffer.from(stream);
    if (at < copy.length) copy[at] = Math.floor(to * 255);
    return copy;
  }
  const text = stream.toString();
  const parts = kind === "line" ? text.split(/(?<=\n)/) : eventsIn(text);
  const [one, other] = [Math.floor(from * parts.length), Math.floor(to * parts.length)];
  const part = parts[one];
  if (part === undefined) return stream;
  if (kind === "repeat") parts.splice(other, 0, part);
  else if (kind === "drop") parts.splice(one, 1);
  else {
    parts[one] = parts[other] ?? "";
    if (other < parts.length) parts[other] = part;
  }
  return Buffer.from(parts.join(""));
}

/** Returns the JSON of each whole event, up to the first mark of an end or of an error. */
function wholeEvents(stream: Buffer): Json[] {
  const events: Json[] = [];
  const text = stream.toString().replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  for (const event of text.split("\n\n").slice(0, -1)) {
    const lines = event.split("\n").filter((line) => line.startsWith("data:"));
    const data = lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
    if (data === "[DONE]") break;
    const json = jsonOf(data);
    if (!isObject(json)) continue;
    if (isEnd(json)) break;
    events.push(json);
  }
  return events;
}

function isEnd(event: Json): boolean {
  if (event.error) return true;
  if (typeof event.type === "string" && /^(message_delta|message_stop|error|response\.\w+)$/.test(event.type))
    return !/^response\.(created|in_progress)$/.test(event.type);
  const reasons = [
    ...listOf(event.choices).map((one) => one.finish_reason),
    ...listOf(event.candidates).map((one) => one.finishReason),
  ];
  return reasons.some((reason) => typeof reason === "string");
}

/** Returns the text that an event adds to the answer. */
function textIn(event: Json): string {
  const delta = fieldsOf(event.delta);
  if (event.type === "content_block_delta") return delta.type === "text_delta" ? String(delta.text) : "";
  if (event.type === "response.output_text.delta") return String(event.delta);
  const said = listOf(event.choices)
    .slice(0, 1)
    .map((one) => fieldsOf(one.delta ?? one.message).content);
  const parts = listOf(event.candidates)
    .slice(0, 1)
    .flatMap((one) => listOf(fieldsOf(one.content).parts));
  const list = [...said.flatMap(listOf), ...parts.filter(({ thought }) => thought !== true)];
  const texts = list.map(({ text }) => (typeof text === "string" ? text : ""));
  return [...said.filter((one) => typeof one === "string"), ...texts].join("");
}

/** Returns the words that arrived whole. A word is lost if an edit has touched one of its characters. */
function wantedWords(stream: Buffer): string[] {
  const pieces = wholeEvents(stream).map(textIn);
  return pieces.flatMap((piece) => piece.match(/\[w\d+ü🌱\]/gu) ?? []);
}

function messageOf(outcome: ModelOutcome) {
  if (outcome.kind === "message") return outcome.message;
  return outcome.kind === "overflow" || outcome.kind === "refused" ? undefined : outcome.partial;
}

const ECHO = {
  ...{ name: "echo", description: "Echoes.", parameters: { type: "object", properties: {} } },
  ...{ parallel: true, idempotent: true },
};

async function openServer() {
  let answer: { pieces: readonly Buffer[]; staysOpen: boolean } = { pieces: [], staysOpen: false };
  const server = await serveHttp(async (request, response) => {
    request.resume();
    request.socket.setNoDelay(true);
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const piece of answer.pieces) {
      response.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (!answer.staysOpen) response.end();
  });
  return {
    ...server,
    answer: (next: typeof answer) => {
      answer = next;
    },
  };
}

function splitAt(stream: Buffer, splits: readonly number[]): Buffer[] {
  const places = [...splits, 0, 1].map((one) => Math.floor(one * stream.length)).sort((a, b) => a - b);
  return places
    .slice(1)
    .map((to, at) => stream.subarray(places[at], to))
    .filter(({ length }) => length > 0);
}

function modelFor({ id, api }: Dialect, origin: string, staysOpen: boolean) {
  const idleTimeoutSeconds = staysOpen ? IDLE_SECONDS.open : IDLE_SECONDS.closed;
  const baseUrl = `${origin}${api === "google-generative-ai" ? "/v1beta" : "/v1"}`;
  const provider = {
    ...PROVIDER,
    id,
    api,
    baseUrl,
    maxRetries: 0,
    idleTimeoutSeconds,
    models: [TEST_MODEL],
  };
  const model = resolveModel([provider], `${id}/${TEST_MODEL.id}`);
  if (!model.ok) throw new Error(model.error);
  return model.value;
}

/** Thinking in tags hides the text behind a tag that was lost. */
const hidesText = ({ style }: Dialect, { thinks }: Input): boolean => style?.thinking === "tags" && thinks;

export const modelStreams: FuzzTarget<Input> = {
  name: "model-streams",
  proves: "each damaged stream settles as a value, and no text that arrived whole is lost",
  inputs,
  roundRuns: 300,
  ciRuns: 100,
  async open() {
    const server = await openServer();
    const port = openModelPort(fastWorld(SPEED));
    return {
      async check(input) {
        const dialect = DIALECTS.find(({ id }) => id === input.dialect);
        must(dialect !== undefined, "the corpus names an unknown dialect");
        const { pieces } = streamOf(dialect, speechFor(input), TEST_MODEL.id, 0);
        const stream = input.edits.reduce(edited, Buffer.from(pieces.join("")));
        server.answer({ pieces: splitAt(stream, input.splits), staysOpen: input.staysOpen });
        const texts: string[] = [];
        const entry = {
          id: "u1",
          role: "user",
          content: [{ type: "text", text: "go" }],
          timestamp: 1,
        } as const;
        const abort = new AbortController();
        const request = {
          ...{
            model: modelFor(dialect, server.origin, input.staysOpen),
            system: "You are a test.",
            entries: [entry],
          },
          ...{ tools: [ECHO], thinking: "medium" as const, sessionId: "s1", limits: ANSWER_LIMITS },
        } as const;
        const late = Promise.withResolvers<undefined>();
        const timer = setTimeout(() => late.resolve(undefined), SETTLED_MAX_MS);
        const call = port.call(request, collectTexts(texts), abort.signal);
        const outcome = await Promise.race([call, late.promise]).finally(() => clearTimeout(timer));
        must(outcome !== undefined, () => `the call hangs: ${shown(stream.toString())}`);
        const message = messageOf(outcome);
        const answer = message === undefined ? "" : textOf(message as Parameters<typeof textOf>[0]);
        if (hidesText(dialect, input)) return;
        const lost = wantedWords(stream).filter((one) => !answer.includes(one));
        must(lost.length === 0, () => `lost ${lost}: ${shown({ outcome })} of ${shown(stream.toString())}`);
      },
      close: () => server.close(),
    };
  },
};
