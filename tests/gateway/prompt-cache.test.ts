// The bytes of consecutive model requests of one session: a provider's cache has the longest common prefix.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openModelPort } from "../../src/agent/model/port.ts";
import { PROVIDER_APIS, type ProviderApi } from "../../src/core/shapes/settings/settings.ts";
import { cleanup, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { promptPieces } from "../kit/model-server/prompt-cache.ts";
import type { ServedRequest } from "../kit/model-server/requests.ts";
import { type Script, startModelServer } from "../kit/model-server/server.ts";
import { call, text, usage } from "../kit/model-server/steps.ts";
import { agentSettings } from "../tools/app.ts";
import { openHouse } from "./kit.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WINDOW = 200_000;

/** Opens a gateway whose clock moves only between runs, with a workspace that has instructions and a memory. */
async function openTalk(api: ProviderApi, script: Script) {
  const served = await startModelServer(script);
  cleanup(() => served.close());
  const workspace = join(temporaryFolder(), "workspace");
  mkdirSync(workspace);
  const put = (name: string, words: string): void => writeFileSync(join(workspace, name), words);
  put("AGENTS.md", "Be kind.");
  const plain = quietWorld();
  // In the future, because the timers of the gateway are real.
  let nowMs = Math.ceil(plain.clock.now() / DAY_MS + 1) * DAY_MS;
  const dayOf = (days: number): string => new Date(nowMs + days * DAY_MS).toISOString().slice(0, 10);
  const world = { ...plain, clock: { ...plain.clock, now: () => nowMs } };
  const provider = served.provider(api, { contextWindow: WINDOW });
  const house = await openHouse({
    world,
    model: openModelPort(world),
    choices: {
      providers: [provider],
      agents: [agentSettings("main", { model: `${provider.id}/test-model`, workspace })],
    },
  });
  const client = await house.client();
  /** Sends a message some hours after the last one; resolves with the answer. */
  const says = async (message: string, hours = 1): Promise<string> => {
    nowMs += hours * HOUR_MS;
    const accepted = await client.agent({ message, sessionKey: "main", idempotencyKey: crypto.randomUUID() });
    const done = await accepted.done;
    return done.result?.text ?? done.summary;
  };
  return { requests: served.requests, says, put, days: [dayOf(0), dayOf(1)] };
}

function expectPrefix(before: ServedRequest | undefined, after: ServedRequest | undefined): void {
  if (before === undefined || after === undefined) throw new Error("there is no such request");
  const pieces = promptPieces(before);
  const differs = pieces.findIndex((piece, at) => promptPieces(after)[at] !== piece);
  expect({ differs, piece: pieces[differs] }).toEqual({ differs: -1, piece: undefined });
}

const isSummaryRequest = ({ lastUserText }: ServedRequest): boolean =>
  lastUserText.includes("Condense this conversation");

test.each(PROVIDER_APIS)(
  "%s: each request of a session, and the one for its summary, continues the request before it",
  async (api) => {
    const { requests, says } = await openTalk(api, (request) => {
      if (isSummaryRequest(request)) return "Ada said hello twice.";
      if (request.lastUserText === "look" && request.toolResults.length === 0)
        return [text("Looking."), call("session_status"), call("agents_list")];
      const input = request.lastUserText === "fill" ? WINDOW * 0.9 : 100;
      return [text(`heard ${request.lastUserText}`), usage({ input, output: 20 })];
    });
    for (const words of ["hello", "look", "hello again", "fill"]) await says(words);
    expect(requests).toHaveLength(5);
    expect(await says("and now?")).toBe("heard and now?");
    expect(requests.map(isSummaryRequest)).toEqual([false, false, false, false, false, true, false]);
    for (let at = 1; at <= 5; at += 1) expectPrefix(requests[at - 1], requests[at]);
    // The request after the summary keeps at least the tools and the system prompt.
    expect(requests[6]?.system).toBe(requests[5]?.system);
    expect(requests[6]?.body.tools).toEqual(requests[5]?.body.tools);
    expect(JSON.stringify(requests[6]?.body)).toContain("Ada said hello twice.");
  },
);

test("a new date, memory or instruction file changes the system prompt only from its own text on", async () => {
  const talk = await openTalk("anthropic-messages", ({ lastUserText, toolResults }) => {
    if (lastUserText !== "keep" || toolResults.length > 0) return "ok";
    return [call("memory", { action: "add", text: "Ada likes tea." })];
  });
  const { requests, says, put, days } = talk;
  await says("one");
  await says("two", 24);
  await says("keep");
  await says("three");
  put("AGENTS.md", "Be very kind.");
  await says("four");
  const changes = [...days, "Be kind."];
  const all = requests.map(({ system }) => system);
  expect(new Set(all).size).toBe(4);
  // The run that writes the memory keeps its prompt to its end.
  const texts = [...new Set(all)];
  changes.forEach((changed, at) => {
    const [before = "", after = ""] = texts.slice(at);
    const word = before.lastIndexOf("\n", before.indexOf(changed));
    expect(word).toBeGreaterThan(0);
    expect(after.slice(0, word)).toBe(before.slice(0, word));
    expect(after).not.toBe(before);
  });
});

test("a model that calls a tool instead of writing a summary is asked again with the messages as text", async () => {
  const { requests, says } = await openTalk("openai-completions", (request) => {
    if (request.system.startsWith("You condense")) return "Ada said hello.";
    if (isSummaryRequest(request)) return [text("Let me look."), call("session_status")];
    return [text("ok"), usage({ input: request.lastUserText === "fill" ? WINDOW * 0.9 : 100, output: 20 })];
  });
  for (const words of ["hello", "fill", "and now?"]) await says(words);
  expect(requests.map(isSummaryRequest)).toEqual([false, false, true, true, false]);
  expect(JSON.stringify(requests.at(-1)?.body)).toContain("Ada said hello.");
  expect(JSON.stringify(requests.at(-1)?.body)).not.toContain("Let me look.");
});
