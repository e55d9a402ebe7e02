// Runs a turn over a transcript in memory. The transcript can simulate crashes, and all events are recorded.

import { runTurn, type TurnArgs, type TurnEnd } from "../../src/agent/loop/loop.ts";
import type { ToolEvent } from "../../src/agent/loop/tool-calls.ts";
import { listModels, type ModelPort, type ResolvedModel } from "../../src/agent/model/model.ts";
import type { Entry, UserMessage } from "../../src/core/shapes/message.ts";
import { ANSWER_LIMITS } from "../../src/core/shapes/settings/settings.ts";
import type { ToolCallRequest, ToolOutcome, ToolSpec } from "../../src/core/shapes/tool.ts";
import { collectTexts } from "../kit/live-text.ts";
import { fakeWorld } from "../kit/world.ts";

/** Thrown by the transcript when the test simulates a crash of the process. */
export class Crash extends Error {}

export const OFFLINE = listModels([])[0] as ResolvedModel;

export function smallModel(contextWindow: number): ResolvedModel {
  return { ...OFFLINE, settings: { ...OFFLINE.settings, contextWindow } };
}

export function userSays(text: string, id = "input"): UserMessage {
  return { id, role: "user", content: [{ type: "text", text }], timestamp: 1 };
}

export function toolSpec(name: string, more: Partial<ToolSpec> = {}): ToolSpec {
  const parameters = { type: "object", properties: {} };
  return { name, description: name, parameters, parallel: false, idempotent: false, ...more };
}

export interface TurnSetup {
  readonly port: ModelPort;
  readonly entries?: Entry[];
  readonly tools?: readonly ToolSpec[];
  readonly callTool?: (request: ToolCallRequest, signal: AbortSignal) => Promise<ToolOutcome>;
  readonly more?: Partial<TurnArgs>;
  /** Number of appends that succeed. Later ones throw and store nothing. */
  readonly appendsMax?: number;
}

export interface Turn {
  readonly end: Promise<TurnEnd>;
  /** The stored transcript, to which the turn appends. */
  readonly entries: Entry[];
  readonly texts: string[];
  readonly events: ToolEvent[];
  readonly abort: AbortController;
}

/** Starts a turn that appends its messages to `entries`. */
export function startTurn(setup: TurnSetup): Turn {
  const entries = setup.entries ?? [userSays("go")];
  const texts: string[] = [];
  const events: ToolEvent[] = [];
  const abort = new AbortController();
  let appends = 0;
  const end = runTurn({
    runId: "run",
    system: "system",
    model: OFFLINE,
    thinking: "off",
    entries: [...entries],
    tools: setup.tools ?? [],
    append: async (entry) => {
      await Promise.resolve();
      if (appends >= (setup.appendsMax ?? Number.POSITIVE_INFINITY)) throw new Crash();
      appends += 1;
      entries.push(entry);
      return entry;
    },
    callTool: setup.callTool ?? (async (request) => ({ text: `ran ${request.name}`, isError: false })),
    onText: collectTexts(texts),
    onTool: (event) => events.push(event),
    signal: abort.signal,
    attempt: 1,
    maxModelCalls: 100,
    limits: ANSWER_LIMITS,
    port: setup.port,
    world: fakeWorld({ seed: entries.length + 1 }),
    ...setup.more,
  });
  return { end, entries, texts, events, abort };
}
