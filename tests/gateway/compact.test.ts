// Compaction on request: the summary, its run in the lane, repeated requests, and refusals.

import { expect, test } from "vitest";
import { textOf } from "../../src/core/shapes/message.ts";
import { scriptedModel } from "../kit/scripted-model.ts";
import { type House, openHouse, quiet } from "./kit.ts";
import { clientOf } from "./version-4/client.ts";

const MAIN = "agent:main:main";

const isSummary = (text: string): boolean => text.startsWith("Condense this conversation");

async function talkTo(house: House, times: number): Promise<void> {
  for (let at = 0; at < times; at += 1) {
    const text = `question ${at} ${"x".repeat(2_000)}`;
    const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text } });
    if (!accepted.ok) throw new Error(accepted.error);
    await quiet(house);
  }
}

/** A model that writes summaries, and otherwise answers with the first text that it was given. */
const summarising = () =>
  scriptedModel((request) => {
    const texts = request.entries.map((entry) =>
      "role" in entry ? textOf(entry) : `summary:${entry.summary}`,
    );
    return isSummary(texts.at(-1) ?? "") ? "they counted" : (texts[0] ?? "").slice(0, 60);
  });

test("a session is compacted on request, nothing is deleted, and the next answer builds on the summary", async () => {
  const model = summarising();
  const house = await openHouse({ model });
  const client = await house.client();
  await talkTo(house, 6);
  const { messages: before } = await client.request("chat.history", { sessionKey: MAIN });
  const wanted = { key: MAIN, idempotencyKey: "once" };
  const made = await client.request("sessions.compact", wanted);
  expect(made).toEqual({ ok: true, key: MAIN, runId: "once", compacted: true });
  const asked = model.requests.length;
  expect(await client.request("sessions.compact", wanted)).toEqual(made);
  expect(model.requests).toHaveLength(asked);
  const { messages: after } = await client.request("chat.history", { sessionKey: MAIN });
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after.slice(before.length).map((message) => [message.role, textOf(message)])).toEqual([
    ["user", "/compact"],
    ["assistant", expect.stringMatching(/^The older messages are summarised: .* \d+ tokens now\.$/)],
  ]);
  await talkTo(house, 1);
  const last = model.requests.at(-1)?.entries ?? [];
  const read = last.map((entry) => ("role" in entry ? textOf(entry).slice(0, 12) : entry.summary));
  expect(read[0]).toBe("they counted");
  expect(read).not.toContain("question 2 x");
});

test("a client of version 4 needs no key, and is told if there was nothing to summarise", async () => {
  const house = await openHouse({ model: summarising() });
  const ask = await clientOf(house);
  await talkTo(house, 1);
  const { payload } = await ask("sessions.compact", { key: "main", maxLines: 400 });
  expect(payload).toMatchObject({ ok: true, key: MAIN, compacted: true });
  const failing = await openHouse({ model: scriptedModel((_, call) => (call < 3 ? "ok" : "")) });
  const other = await clientOf(failing);
  await talkTo(failing, 3);
  expect((await other("sessions.compact", { key: MAIN })).payload).toMatchObject({
    compacted: false,
    reason: expect.stringContaining("empty summary"),
  });
  expect((await other("sessions.compact", { key: "agent:none:main" })).error?.code).toBe("NOT_FOUND");
});
