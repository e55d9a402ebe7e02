// Lets MCP clients ask again for the answer to a tool call after their connection broke (from revision
// 2025-11-25 on).
// RS1: the first event of a call's stream has an id that names the call, so every process can answer a client
//      that comes back, also after a restart. Nothing is stored for it.
// RS2: an answer is given once: to the client that comes back, if it was written before, otherwise to its
//      inbox.

import { isObject, jsonOf } from "../../core/json.ts";
import { fail, toolFailure } from "../../core/shapes/errors.ts";
import { sentSoFar, stopWaiting } from "../../flows/conversation/send.ts";
import type { ToolResult } from "../../tools/tool.ts";
import { type McpDeps, resultLater } from "./calls.ts";
import type { McpClient } from "./client.ts";

/** The first revision whose clients expect an event without data, and may come back. */
const SINCE = "2025-11-25";
/** Delay after which a client may come back. */
const RETRY_MS = 1_000;
const EVENT_ID_CHARS_MAX = 400;

/** A tool call, and the id of the request that made it. */
export interface ResumableCall {
  readonly callId: string;
  readonly requestId: string | number;
}

/** Returns whether clients of the request's revision may come back. */
export function mayResume({ headers }: Request): boolean {
  return (headers.get("mcp-protocol-version") ?? "") >= SINCE;
}

/** Returns the call that an event id names, or undefined if it names none. */
export function callOfEvent(id: string | null): ResumableCall | undefined {
  if (id === null || id.length > EVENT_ID_CHARS_MAX) return undefined;
  const read = jsonOf(Buffer.from(id, "base64url").toString());
  if (!Array.isArray(read)) return undefined;
  const [callId, requestId] = read as unknown[];
  const isId = typeof requestId === "string" || Number.isInteger(requestId);
  if (typeof callId !== "string" || !isId) return undefined;
  return { callId, requestId: requestId as string | number };
}

/** Puts the event before a stream by which its client may come back. */
export function primed(response: Response, call: ResumableCall): Response {
  const { body, status, headers } = response;
  if (body === null || headers.get("content-type")?.startsWith("text/event-stream") !== true) return response;
  const id = Buffer.from(JSON.stringify([call.callId, call.requestId])).toString("base64url");
  const first = new TextEncoder().encode(`id: ${id}\nretry: ${RETRY_MS}\ndata: \n\n`);
  const stream = new TransformStream<Uint8Array, Uint8Array>({ start: (to) => to.enqueue(first) });
  return new Response(body.pipeThrough(stream), { status, headers });
}

/** Returns the result of a call for a client that comes back without it. */
export async function resultAgain(deps: McpDeps, client: McpClient, callId: string): Promise<ToolResult> {
  const isOwn = (await sentSoFar(deps, client, callId)) !== undefined;
  // A connection that only its client sees as broken may still be open here.
  if (isOwn) await stopWaiting(deps, callId);
  const sent = isOwn ? await sentSoFar(deps, client, callId) : undefined;
  if (sent === undefined) {
    const error = "the connection broke before this call had an answer";
    const hint = "Check the effects of the call before you repeat it.";
    return toolFailure(fail("outcome_unknown", error, { hint }));
  }
  const { run, outcome, isAnswered } = sent;
  if (isAnswered === true && outcome !== undefined) return resultLater(deps, client, callId, outcome);
  const error =
    "the connection broke before the answer came; the message was accepted, and its run continues";
  const hint = "Do not send it again. The answer comes to your inbox: read it with sessions_inbox.";
  return { runId: run.runId, ...toolFailure(fail("outcome_unknown", error, { hint })) };
}

/** Returns the single call of a tool among these messages. */
export function onlyCall(
  messages: readonly Readonly<Record<string, unknown>>[],
): string | number | undefined {
  const [message] = messages;
  if (messages.length !== 1 || !isObject(message) || message.method !== "tools/call") return undefined;
  const { id } = message;
  return typeof id === "string" || Number.isInteger(id) ? (id as string | number) : undefined;
}
