// Sample rows for store tests: complete and minimal ones. A test overrides the fields that it needs.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { AssistantMessage, ToolResultMessage, UserMessage } from "../../src/core/shapes/message.ts";
import { ZERO_USAGE } from "../../src/core/shapes/message.ts";
import type { Run } from "../../src/core/shapes/run.ts";
import { NOT_YET_USED, type Session } from "../../src/core/shapes/session.ts";
import type { Log } from "../../src/world.ts";
import { GROUND } from "../kit/cleanup.ts";

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Returns a log whose lines a test can read. */
export function keptLog(): Log & { readonly lines: { level: string; text: string; fields: object }[] } {
  const lines: { level: string; text: string; fields: object }[] = [];
  const at = (level: string) => (fields: object, text: string) => void lines.push({ level, text, fields });
  return { lines, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** Makes a temporary folder. `remove` deletes it. */
export function temporaryDir(): { dir: string; remove(): void } {
  const dir = mkdtempSync(join(GROUND, "parley-store-"));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

export function sampleSession(over: Partial<Session> = {}): Session {
  return {
    key: "agent:main:main",
    sessionId: "session-1",
    agentId: "main",
    kind: "main",
    createdAt: 1_000,
    updatedAt: 1_000,
    spawnDepth: 0,
    external: false,
    ...NOT_YET_USED,
    ...over,
  };
}

export function sampleRun(over: Partial<Run> = {}): Run {
  return {
    runId: "run-1",
    sessionKey: "agent:main:main",
    sessionId: "session-1",
    agentId: "main",
    laneSeq: 1,
    kind: "turn",
    state: "queued",
    input: { text: "hello" },
    chainId: "chain-1",
    hop: 0,
    attempt: 0,
    crashes: 0,
    acceptedAt: 1_000,
    timeoutMs: 0,
    usage: ZERO_USAGE,
    ...over,
  };
}

export function userMessage(id: string, text: string): UserMessage {
  return { id, role: "user", content: [{ type: "text", text }], timestamp: 1_000 };
}

export function assistantMessage(id: string, text: string): AssistantMessage {
  return {
    id,
    role: "assistant",
    content: [{ type: "text", text }],
    timestamp: 1_000,
    api: "openai-completions",
    provider: "local",
    model: "test",
    usage: ZERO_USAGE,
    stopReason: "stop",
  };
}

export function toolResult(id: string, text: string): ToolResultMessage {
  return {
    id,
    role: "toolResult",
    toolCallId: `call-${id}`,
    toolName: "read",
    content: [{ type: "text", text }],
    isError: false,
    timestamp: 1_000,
  };
}
