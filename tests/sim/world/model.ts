// The scripted model: it takes time, streams, fails, overflows its context, hangs, and calls tools. It never
// makes the same choice twice: after a crash it answers a repeated request differently, as a real model may.

import { matchResults } from "../../../src/agent/loop/result-matching.ts";
import { modelView } from "../../../src/agent/loop/view.ts";
import type {
  ModelOutcome,
  ModelPort,
  ModelRequest,
  WrittenMessage,
} from "../../../src/agent/model/model.ts";
import { nameQueue } from "../../../src/core/rules/run-queue.ts";
import {
  isCompaction,
  type Message,
  textOf,
  toolCallsOf,
  ZERO_USAGE,
} from "../../../src/core/shapes/message.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import type { TextDelta } from "../../../src/core/text/text-delta.ts";
import type { Dice } from "../../kit/dice.ts";
import { wantedCalls } from "../calls.ts";
import { hasTool } from "../checks/rights.ts";
import type { Story, Work } from "../story.ts";
import { finalText } from "../words.ts";

/** A model port must return failures, so an exception is a bug. */
export class ModelBug extends Error {}

interface Asked {
  readonly story: Story;
  readonly settings: Settings;
  readonly work: Work;
  readonly request: ModelRequest;
  readonly luck: Dice;
  readonly signal: AbortSignal;
  onText(delta: TextDelta): void;
}

/** Waits for some time; after an abort it settles a little later. */
function wait(
  { story, signal, luck }: Pick<Asked, "story" | "signal" | "luck">,
  ms: number,
): Promise<boolean> {
  return new Promise((resolve) => {
    const late = (): void => {
      story.time.after(luck.below(4) === 0 ? luck.below(90) : 0, () => resolve(false));
    };
    const timer = story.time.after(ms, () => {
      signal.removeEventListener("abort", stop);
      resolve(true);
    });
    const stop = (): void => {
      timer.cancel();
      late();
    };
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

/**
 * I6: checks that there are at most as many runs that call a model as slots. A run whose row has ended, or
 * waits, holds no slot: its process has not heard of that yet.
 */
async function checkSlots(story: Story, settings: Settings, process: string): Promise<void> {
  const works = [...story.works].filter((work) => work.process === process && work.thinking > 0);
  const rows = await story.look("select run_id from runs where state = 'running'");
  const running = new Set(rows.map((row) => row.run_id));
  const thinking = works.filter((work) => running.has(work.run.runId));
  const { maxConcurrent, subagents } = settings;
  if (thinking.length > maxConcurrent)
    story.wrong("I6", `${thinking.length} runs execute at once, and there are ${maxConcurrent} slots`);
  const children = thinking.filter((work) => nameQueue(work.run).startsWith("2")).length;
  if (children > subagents.maxConcurrent)
    story.wrong("I6", `${children} sub-agents execute at once, ${subagents.maxConcurrent} may`);
}

/** Checks that a provider would accept the transcript: each call has one result. */
function checkEntries(story: Story, request: ModelRequest, runId: string): void {
  const messages = request.entries.filter((entry): entry is Message => !isCompaction(entry));
  for (const [message, results] of matchResults(messages)) {
    const calls = toolCallsOf(message).length;
    if (results.size !== calls)
      story.wrong("transcript", `run ${runId}: ${calls} calls of ${message.id} have ${results.size} results`);
  }
  let open = 0;
  let last = "";
  for (const message of modelView(request.entries, request.model)) {
    if (message.role === "toolResult") open -= 1;
    else if (open !== 0) story.wrong("transcript", `run ${runId}: a call stands without its result`);
    if (message.role === last && message.role === "user")
      story.wrong("transcript", "two user messages in a row");
    if (message.role === "assistant") open += toolCallsOf(message).length;
    last = message.role;
  }
  if (last === "assistant") story.wrong("transcript", `run ${runId}: the last word is the model's`);
}

/**
 * I13: checks that the model gets exactly the tools that the session may use, and none that its spawner may
 * not use.
 */
function checkTools({ story, settings, work, request }: Asked, all: readonly string[]): void {
  const { sessionKey } = work.run;
  const offered = request.tools.map((tool) => tool.name).join();
  const right = all.filter((name) => hasTool(sessionKey, name, story.sessions, settings)).join();
  // The tools were computed when the run began. Since then, an ancestor of the session may have been deleted.
  if (offered === right || offered === work.tools) return;
  story.wrong("I13", `${sessionKey} is offered ${offered} and has a right to ${right}`);
}

function written(asked: Asked, content: WrittenMessage["content"], stopReason: string): WrittenMessage {
  const { luck, request } = asked;
  const { contextWindow, maxOutputTokens } = request.model.settings;
  const longest = contextWindow > 100_000 ? Math.max(1, maxOutputTokens) : 20;
  const [input, output] = [5 + luck.below(30), 1 + luck.below(longest)];
  const cost = request.model.settings.cost.input === 0 ? 0 : (input + output) / 1_000_000;
  return {
    role: "assistant",
    content,
    timestamp: asked.story.time.now(),
    api: "openai-completions",
    provider: "fake",
    model: request.model.settings.id,
    usage: {
      ...ZERO_USAGE,
      input,
      output,
      totalTokens: input + output,
      cost: { ...ZERO_USAGE.cost, input: cost, total: cost },
    },
    stopReason,
  };
}

/** Streams a text in pieces. Returns undefined if the call is aborted before the end. */
async function stream(asked: Asked, text: string): Promise<boolean> {
  const pieces = asked.luck.of([1, 1, 2, 3]);
  for (let piece = 1; piece <= pieces; piece += 1) {
    if (text !== "")
      asked.onText({ offset: 0, text: text.slice(0, Math.ceil((text.length * piece) / pieces)) });
    if (piece < pieces && !(await wait(asked, asked.luck.below(30)))) return false;
  }
  return true;
}

async function trouble(asked: Asked): Promise<ModelOutcome | undefined> {
  const { story, luck, work } = asked;
  if (!luck.chance(story.settling ? 0.01 : story.plan.features.failures)) return undefined;
  const error = `model trouble ${story.word("f")}`;
  const kind = luck.of(["failed", "failed", "partial", "overflow", "throws"] as const);
  // Recorded as a possible cause of a failed run, although compaction may solve the overflow.
  story.failed(work.run.runId, error);
  if (kind === "throws") throw new ModelBug(error);
  if (kind === "overflow") return { kind: "overflow", error };
  if (kind === "failed") return { kind: "failed", error };
  const text = finalText(story, luck);
  if (!(await stream(asked, text))) return { kind: "aborted" };
  const partial = { ...written(asked, [{ type: "text", text }], "error"), errorMessage: error };
  return { kind: "failed", error, partial };
}

/** Returns whether the request asks for the summary of a compaction. */
function isSummaryRequest({ entries }: ModelRequest): boolean {
  const last = entries.at(-1);
  const isMessage = last !== undefined && !isCompaction(last);
  return isMessage && textOf(last).startsWith("Condense this conversation");
}

async function answer(asked: Asked): Promise<ModelOutcome> {
  const { story, luck, request, work, settings } = asked;
  const slow = luck.chance(0.05) ? luck.of([400, 5_000, 600_000]) : luck.below(40);
  if (!(await wait(asked, slow))) return { kind: "aborted" };
  if (isSummaryRequest(request)) {
    return {
      kind: "message",
      message: written(asked, [{ type: "text", text: story.word("summary") }], "stop"),
    };
  }
  const failed = await trouble(asked);
  if (failed !== undefined) return failed;
  const messages = request.entries.filter((entry): entry is Message => !isCompaction(entry));
  const from = messages.findLastIndex((message) => message.role === "user");
  const steps = messages.slice(from + 1).filter((message) => message.role === "assistant").length;
  const offered = request.tools.map((tool) => tool.name);
  const calls = wantedCalls({ story, luck, settings, run: work.run, offered }, steps);
  const text = calls.length === 0 || luck.chance(0.3) ? finalText(story, luck) : "";
  if (!(await stream(asked, text))) return { kind: "aborted" };
  const said = text === "" ? [] : [{ type: "text" as const, text }];
  const thought = luck.chance(0.1) ? [{ type: "thinking" as const, thinking: story.word("t") }] : [];
  // A provider may use the same call id again.
  const ids = luck.chance(0.5) ? ["call_0", "call_1", "call_2"] : calls.map(() => story.word("c"));
  const asks = calls.map((call, at) => ({ type: "toolCall" as const, id: ids[at] ?? "", ...call }));
  const stop = asks.length > 0 ? "toolUse" : luck.chance(0.04) ? "length" : "stop";
  if (stop === "length") story.failed(work.run.runId, "used up its output limit");
  const wanted = asks.map((call) => `${call.name} ${JSON.stringify(call.arguments)}`).join("; ");
  story.trace.add(`model of ${work.run.runId}: ${wanted} ${JSON.stringify(text)}`);
  return { kind: "message", message: written(asked, [...thought, ...said, ...asks], stop) };
}

/** Makes the model. `toolNames` are the names of all existing tools. */
export function createModel(
  story: Story,
  parts: { process: string; settings: Settings; toolNames: readonly string[]; alive(): boolean },
): ModelPort {
  const { process, settings } = parts;
  return {
    async call(request, onText, signal) {
      const work = [...story.works].find(
        (one) => one.process === process && one.run.sessionId === request.sessionId,
      );
      // A dead process gets no answer.
      if (!parts.alive()) return new Promise(() => {});
      if (work === undefined)
        return story.wrong("I1", `a model is asked for ${request.sessionId}, where nothing runs`);
      await story.refresh();
      const asked: Asked = { story, settings, work, request, luck: story.luck("models"), signal, onText };
      work.thinking += 1;
      await checkSlots(story, settings, process);
      if (!isSummaryRequest(request)) {
        checkEntries(story, request, work.run.runId);
        checkTools(asked, parts.toolNames);
      }
      try {
        return await answer(asked);
      } finally {
        work.thinking -= 1;
      }
    },
  };
}
