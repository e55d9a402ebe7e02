// Two gateway processes over one database, and an MCP client whose requests alternate between them.

import { expect, test } from "vitest";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import {
  type Answer,
  INBOX_LOOK_MS,
  messageOf,
  objectOf,
  openPeer,
  raw,
  sendAs,
} from "../../gateway/clients/mcp.ts";
import { openHouse } from "../../gateway/kit.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { TOKEN } from "../../kit/process/fleet.ts";
import { homeWith, startProcess } from "../../kit/process/gateway-process.ts";
import { until } from "../../kit/until.ts";
import { worldWithoutTimers } from "../../kit/world.ts";
import { emptyUrl } from "../../store/transfer/moves.ts";

const ME = { authorization: `Bearer ${TOKEN}`, "x-parley-handle": "roamer" };

async function call(
  http: string,
  name: string,
  args: Answer,
  headers: Record<string, string> = ME,
): Promise<Answer> {
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name, arguments: args },
  });
  const { result } = await messageOf(await raw({ http }, { body, headers }));
  return objectOf(result);
}

/** Resolves with the first event of a stream that is not a comment. */
async function firstEvent(response: Response): Promise<Answer> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    const data = /^data: ?(.+)$/m.exec(text)?.[1];
    if (data !== undefined) return JSON.parse(data) as Answer;
  }
  throw new Error("the stream ended first");
}

test("a gateway keeps no state of a client between requests, so any process can serve its calls, inbox and notifications", async () => {
  const url = await emptyUrl();
  const config = { store: { postgresUrl: url }, agents: { list: [{ id: "main" }, { id: "research" }] } };
  const [one, two] = await Promise.all([
    startProcess({ home: homeWith(config) }),
    startProcess({ home: homeWith(config) }),
  ]);
  const sent = await call(one.httpUrl, "sessions_send", {
    sessionKey: "agent:research:main",
    message: "say hello",
  });
  expect(sent).toMatchObject({ status: "ok" });
  const key = "agent:main:mcp:roamer";
  expect(JSON.stringify(await call(two.httpUrl, "sessions_history", { sessionKey: key }))).toContain(
    "say hello",
  );

  const headers = { ...ME, accept: "text/event-stream" };
  const stream = await raw({ http: two.httpUrl }, { method: "GET", headers });
  const news = firstEvent(stream);
  const other = { ...ME, "x-parley-handle": "writer" };
  expect(
    await call(
      one.httpUrl,
      "sessions_send",
      { sessionKey: key, message: "for you", timeoutSeconds: 0 },
      other,
    ),
  ).toMatchObject({
    status: "accepted",
    delivery: { mode: "inbox" },
  });
  expect(await news).toMatchObject({
    method: "notifications/resources/updated",
    params: { uri: "parley://inbox" },
  });
  for (const { httpUrl } of [one, two]) {
    expect(await call(httpUrl, "sessions_inbox", {})).toMatchObject({
      sessionKey: key,
      messages: [{ from: "agent:main:mcp:writer", text: "for you" }],
    });
  }

  const question = { sessionKey: key, message: "which port?", timeoutSeconds: 600 };
  const waiting = call(one.httpUrl, "sessions_send", question, other);
  const inbox = async () => JSON.stringify(await call(two.httpUrl, "sessions_inbox", {}));
  await expect.poll(inbox).toContain("which port?");
  const answer = { sessionKey: "agent:main:mcp:writer", message: "port 80" };
  // Both messages await an answer, so a text that names none would be a new message, whose wait is a cycle.
  expect(await call(two.httpUrl, "sessions_send", answer)).toMatchObject({
    code: "wait_cycle",
    hint: expect.stringContaining("set inReplyTo"),
  });
  const { messages } = (await call(one.httpUrl, "sessions_inbox", {})) as { messages: Answer[] };
  const named = { ...answer, inReplyTo: messages.at(-1)?.id };
  expect(await call(two.httpUrl, "sessions_send", named)).toMatchObject({ status: "accepted" });
  expect(await waiting).toMatchObject({ status: "ok", reply: "port 80" });
});

test("a client that waits for its inbox at one gateway gets a message that another gateway accepted, without polling", async () => {
  const url = await emptyUrl();
  const { world, skipped } = worldWithoutTimers(INBOX_LOOK_MS);
  const choices = { tools: { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } } };
  const waiting = await openHouse({ choices, world, disk: await openPostgres({ url, world: quietWorld() }) });
  const accepting = await openHouse({ choices, disk: await openPostgres({ url, world: quietWorld() }) });
  const peer = await openPeer(waiting, "version 1", { headers: { "x-parley-handle": "roamer" } });
  await peer.call("sessions_inbox");
  const before = skipped();
  const news = peer.call("sessions_inbox", { waitSeconds: 300 });
  await until(() => skipped() > before);
  await sendAs(accepting, "agent:research:main", "agent:main:mcp:roamer", "for you");
  expect(await news).toMatchObject({ count: 1, messages: [{ text: "for you" }] });
});
