// Streams of both wire formats as servers send them, whole and split at each byte.

import { expect, test } from "vitest";
import type { RequestOutcome } from "../../src/agent/model/provider-request.ts";
import { STREAMS } from "./client-streams.ts";
import { made, modelOf, providerAt, rawServer, requestFor, streaming, WIRE_APIS } from "./clients-kit.ts";

/** Streams that the provider broke off, with the text that remains. All others are whole answers. */
const BROKEN: Record<string, string> = {
  "no reason at the end": "half",
  "nothing at all": "",
  "a filter": "so ",
  "a refusal": "so ",
  "an error before the text": "",
  "an error in the text": "so ",
  "an event called error": "",
  "invalid JSON": "so ",
  "no end": "half",
};
/** Of these, the ones that a server has marked as whole. */
const MARKED = ["openai-completions no reason at the end", "anthropic-messages no reason at the end"];

const textIn = (content: readonly { readonly type: string; readonly text?: string }[] = []): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

function comparable(outcome: RequestOutcome): unknown {
  if (outcome.kind === "failed") return outcome.failure.error;
  if (outcome.kind !== "message") return outcome;
  const { timestamp: _, ...message } = outcome.message;
  return message;
}

for (const api of WIRE_APIS) {
  test.each(Object.keys(STREAMS[api]))(`${api}: %s`, async (name) => {
    const stream = STREAMS[api][name] ?? "";
    const server = await rawServer(streaming(stream));
    const request = requestFor(modelOf(providerAt(server.url, api)));
    const whole = await made(request);
    server.answer(streaming(...Array.from(Buffer.from(stream), (byte) => Uint8Array.of(byte))));
    const split = await made(request);
    expect(comparable(split.outcome)).toEqual(comparable(whole.outcome));
    const left = MARKED.includes(`${api} ${name}`) ? undefined : BROKEN[name];
    if (left === undefined) expect(whole.outcome.kind, JSON.stringify(whole.outcome)).toBe("message");
    else if (whole.outcome.kind !== "failed") throw new Error(JSON.stringify(whole.outcome));
    else expect(textIn(whole.outcome.partial?.content)).toBe(left);
  });
}
