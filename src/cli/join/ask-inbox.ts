// Asks the gateway for the inbox of one session, with one MCP request and without a connection that is kept.

import { isObject, jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { outgoingFetch } from "../../world/outgoing.ts";
import { eventData } from "../mcp/event-stream.ts";
import type { Upstream } from "../mcp/upstream.ts";

export interface InboxMessage {
  readonly id: string;
  readonly kind: string;
  readonly from?: string;
  readonly text: string;
}

interface InboxPage {
  readonly messages: readonly InboxMessage[];
  readonly nextAfter?: string;
}

function pageOf(answer: unknown): InboxPage | undefined {
  const result = isObject(answer) && isObject(answer.result) ? answer.result : {};
  const [first] = Array.isArray(result.content) ? result.content : [];
  const page = isObject(first) && typeof first.text === "string" ? jsonOf(first.text) : undefined;
  return isObject(page) && Array.isArray(page.messages) ? (page as unknown as InboxPage) : undefined;
}

/**
 * Returns the messages after one, or without it the newest; undefined: the gateway is away or refuses the
 * token. `waitSeconds`: time for something new to come.
 */
export async function askInbox(
  { url, token }: Upstream,
  wanted: { readonly after: string | undefined; readonly waitSeconds?: number },
  signal: AbortSignal,
): Promise<InboxPage | undefined> {
  const call = { name: "sessions_inbox", arguments: optional(wanted) };
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
      return pageOf(await response.json());
    for await (const data of eventData(response.body)) {
      const page = pageOf(jsonOf(data));
      if (page !== undefined) return page;
    }
  } catch {
    // The gateway is away: a hook is silent then.
  }
  return undefined;
}
