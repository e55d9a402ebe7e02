// Calls a tool as the session of a window, with one MCP request that keeps no connection open.

import { isObject, jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { outgoingFetch } from "../../world/outgoing.ts";
import { eventData } from "./mcp/event-stream.ts";
import type { Upstream } from "./mcp/upstream.ts";

export interface InboxMessage {
  readonly id: string;
  readonly kind: string;
  readonly from?: string;
  readonly text: string;
  /** Present if the window has acknowledged or answered it. */
  readonly acknowledged?: true;
}

export interface InboxPage {
  readonly count: number;
  readonly messages: readonly InboxMessage[];
  readonly nextAfter?: string;
  /** Present if there are older messages: the id of the oldest message of this page. */
  readonly nextBefore?: string;
  /** Present if the message `after` is not in the inbox: the session was reset. The page is empty then. */
  readonly isAfterGone?: true;
}

/** The messages that a page contains. Without `after` and `before`: the newest ones. */
export interface InboxWanted {
  readonly after?: string;
  readonly before?: string;
  /** Maximum wait for a new message. */
  readonly waitSeconds?: number;
  /** Asks only for the number of messages that no program has received yet. */
  readonly limit?: 0;
}

function resultOf(answer: unknown): Readonly<Record<string, unknown>> | undefined {
  const result = isObject(answer) && isObject(answer.result) ? answer.result : {};
  const [first] = Array.isArray(result.content) ? result.content : [];
  const value = isObject(first) && typeof first.text === "string" ? jsonOf(first.text) : undefined;
  return isObject(value) ? value : undefined;
}

/** Calls a tool of the gateway. Returns undefined if the gateway cannot be reached or refuses the token. */
export async function callTool(
  { url, token }: Upstream,
  call: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> },
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const response = await outgoingFetch("gateway", url)(url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2025-11-25",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call }),
      signal,
    });
    if (!response.ok || response.body === null) return undefined;
    if (response.headers.get("content-type")?.startsWith("application/json"))
      return resultOf(await response.json());
    for await (const data of eventData(response.body)) {
      const result = resultOf(jsonOf(data));
      if (result !== undefined) return result;
    }
  } catch {
    // The gateway cannot be reached. A hook prints nothing in this case.
  }
  return undefined;
}

/**
 * Returns a page of the inbox. Returns undefined if the gateway cannot be reached or refuses the token.
 */
export async function askInbox(
  upstream: Upstream,
  wanted: InboxWanted,
  signal: AbortSignal,
): Promise<InboxPage | undefined> {
  const page = await callTool(upstream, { name: "sessions_inbox", arguments: optional(wanted) }, signal);
  if (page?.code === "message_not_found" && wanted.after !== undefined)
    return { count: 0, messages: [], isAfterGone: true };
  return Array.isArray(page?.messages) ? (page as unknown as InboxPage) : undefined;
}
