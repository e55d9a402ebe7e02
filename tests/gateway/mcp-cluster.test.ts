// Two gateway processes over one database, and an MCP client whose requests alternate between them.

import { expect, test } from "vitest";
import { TOKEN } from "../kit/fleet.ts";
import { homeWith, startProcess } from "../kit/gateway-process.ts";
import { emptyUrl } from "../store/moves.ts";
import { type Answer, messageOf, objectOf, raw } from "./mcp-kit.ts";

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

/** Resolves with the first event of a stream that is no comment. */
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

test("a gateway keeps no state between two requests: any process knows the client, its inbox and its notifications", async () => {
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
  await expect.poll(inbox, { timeout: 20_000 }).toContain("which port?");
  const answer = { sessionKey: "agent:main:mcp:writer", message: "port 80" };
  expect(await call(two.httpUrl, "sessions_send", answer)).toMatchObject({ status: "accepted" });
  expect(await waiting).toMatchObject({ status: "ok", reply: "port 80" });
});
