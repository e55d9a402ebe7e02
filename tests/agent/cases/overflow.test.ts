// Contexts that are too long are compacted, and the message is answered.

import { beforeAll, describe, expect, test } from "vitest";
import { forFile } from "../../kit/cleanup.ts";
import type { Refusal } from "../../kit/dialects/overflow.ts";
import { json, openRaw, type RawHouse, type RawReply, saying } from "../../kit/dialects/raw.ts";
import { overflowFrom } from "../../kit/dialects/rules.ts";

/** Servers whose errors have different forms. refusals.test.ts judges the words of all servers. */
const OVERFLOWS = ["OpenAI", "vLLM, newer", "Anthropic, with the output", "nginx"].map(overflowFrom);
const NOT_OVERFLOWS: readonly Refusal[] = [
  {
    server: "OpenAI",
    status: 400,
    body: {
      error: { message: "max_tokens is too large: 500000. This model supports at most 16384 tokens." },
    },
  },
];

const OLD = "an old message";
const OLD_MESSAGES = 6;

const modelOf = (kind: string, at: number): string => `${kind}-${at}`;
let house: RawHouse;
beforeAll(async () => {
  const models = [
    ...OVERFLOWS.map((_, at) => modelOf("long", at)),
    ...NOT_OVERFLOWS.map((_, at) => modelOf("other", at)),
  ];
  house = await forFile(() => openRaw({ models, maxRetries: 0 }));
});

function refuse({ status, body }: Refusal): RawReply {
  return typeof body === "string" ? { status, type: "text/html", pieces: [body] } : json(body, status);
}

/** Fills a session with old messages, and sends one more. The server takes only some of them. */
async function overfill(model: string, refusal: Refusal) {
  let summaries = 0;
  const talk = await house.talk(model, ({ system, messages, lastUserText }) => {
    if (system.startsWith("You condense")) {
      summaries += 1;
      return saying("They said something.");
    }
    if (lastUserText.includes(OLD)) return saying("noted");
    const old = messages.filter(({ texts }) => texts.some((text) => text.includes(OLD)));
    return old.length >= OLD_MESSAGES ? refuse(refusal) : saying("here I am");
  });
  for (let at = 0; at < OLD_MESSAGES; at += 1) await talk.says(`${OLD} ${at} ${"x ".repeat(200)}`);
  const said = await talk.says("and now?");
  return { said, summaries };
}

describe("an overflow is compacted and answered", () => {
  test.concurrent.each(OVERFLOWS.map((one, at) => ({ ...one, at })))("$server, $status", async (refusal) => {
    const { said, summaries } = await overfill(modelOf("long", refusal.at), refusal);
    expect(said).toEqual({ status: "ok", text: "here I am", error: "" });
    expect(summaries).toBe(1);
  });
});

describe("another refusal is not compacted, although it speaks of tokens or lengths", () => {
  test.concurrent.each(NOT_OVERFLOWS.map((one, at) => ({ ...one, at })))(
    "$server, $status",
    async (refusal) => {
      const { said, summaries } = await overfill(modelOf("other", refusal.at), refusal);
      expect({ status: said.status, summaries }).toEqual({ status: "error", summaries: 0 });
    },
  );
});
