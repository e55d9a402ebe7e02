// Converts pairing requests of devices to items of the attention list.

import type { AttentionItem } from "../../contract/methods/attention.ts";
import { type Covers, line } from "../../gateway/attention/items.ts";
import type { CallContext } from "../../gateway/call.ts";
import { nodeKey } from "./node.ts";
import { openRequests } from "./pairing.ts";

export async function items(ctx: CallContext, covers: Covers): Promise<AttentionItem[]> {
  if (!covers.isAdmin || !ctx.deps.settings.nodes.enabled) return [];
  const open = (await openRequests(ctx.deps)).filter(({ nodeId }) => covers.list(nodeKey(nodeId)));
  return open.map(({ requestId, nodeId, code, name, platform, createdAt }) => ({
    id: `node:${requestId}`,
    kind: "node",
    ref: requestId,
    since: createdAt,
    summary: line(ctx, `Device on ${platform} wants to be paired, code ${code}`),
    actions: covers.send(nodeKey(nodeId)) ? ["approve", "deny"] : [],
    title: line(ctx, name),
  }));
}
