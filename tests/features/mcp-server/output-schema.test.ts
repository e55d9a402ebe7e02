// The descriptions of results in the list of tools. The official libraries refuse a result that does not fit.

import { expect, test } from "vitest";
import { openPeer, SPEAKERS } from "../../gateway/clients/mcp.ts";
import { openHouse } from "../../gateway/kit.ts";

const OPEN = { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } };

test.each(SPEAKERS)("OS1, %s: the library accepts the result of each tool, errors too", async (speaker) => {
  const house = await openHouse({ choices: { tools: OPEN } });
  const peer = await openPeer(house, speaker, { name: "My Editor" });
  const sessionKey = "agent:research:main";
  const sent = await peer.call("sessions_send", { sessionKey, message: "what is new?" });
  const later = await peer.call("sessions_send", { sessionKey, message: "and now?", timeoutSeconds: 0 });
  const spawned = await peer.call("sessions_spawn", { task: "count the files" });
  const { messages } = await peer.call("sessions_history", { sessionKey });
  const at = (messages as { id: string }[]).at(-1)?.id;
  const calls: [string, Record<string, unknown>][] = [
    ["sessions_list", { messageLimit: 1 }],
    ["sessions_search", { query: "new" }],
    ["agents_list", {}],
    ["session_status", { sessionKey }],
    ["session_status", { messageId: later.messageId }],
    ["subagents", { action: "list" }],
    ["subagents", { action: "wait", runIds: [spawned.runId] }],
    ["subagents", { action: "cancel" }],
    ["sessions_inbox", {}],
    ["sessions_fork", { sessionKey, at }],
    ["sessions_send", { sessionKey: "agent:nobody:main", message: "hello" }],
    ["message", { action: "send", channel: "telegram", to: "1", message: "hello" }],
  ];
  for (const [name, args] of calls) expect(await peer.call(name, args)).toBeTypeOf("object");
  expect([sent.status, later.status, spawned.status]).toEqual(["ok", "accepted", "accepted"]);
});
