// Several calls of one answer that each need an owner's consent.

import { expect, test } from "vitest";
import { labelFrom } from "../../src/core/rules/labels/labels.ts";
import { addLabels } from "../../src/store/queries/labels.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import { openHouse } from "../gateway/kit.ts";
import { cleanup } from "../kit/cleanup.ts";
import { serveHttp } from "../kit/loopback.ts";
import { scriptedModel } from "../kit/scripted-model.ts";

const MAIN = "agent:main:main";

test("two calls of one answer ask side by side, and each gets its own answer", async () => {
  const paths: string[] = [];
  const server = await serveHttp((request, response) => {
    paths.push(request.url ?? "");
    response.end("ok");
  });
  cleanup(() => server.close());
  const host = `127.0.0.1:${server.port}`;
  const fetches = ["a", "b"].map((name) => ({ name: "fetch", arguments: { url: `http://${host}/${name}` } }));
  const house = await openHouse({
    model: scriptedModel((_, call) => (call === 0 ? { toolCalls: fetches } : "done")),
    choices: { tools: { fetch: { allowHosts: [host] } } },
  });
  const client = await house.client();
  const { sessionId } = (await getSession(house.store.db, MAIN)) ?? { sessionId: "" };
  const outside = labelFrom("outside", "web example.com", 1);
  await house.store.transaction((tx) => addLabels(tx, { key: MAIN, sessionId }, outside, { at: 1 }));
  const { runId } = await client.request("chat.send", { sessionKey: MAIN, message: "go" });
  const open = async () => (await client.request("permissions.list", {})).permissions;
  await expect.poll(async () => (await open()).length).toBe(2);
  for (const { id, detail = "" } of await open())
    await client.request("permissions.answer", { id, decision: detail.includes("/a") ? "allow" : "deny" });
  expect((await client.request("agent.wait", { runId, timeoutMs: 60_000 })).status).toBe("ok");
  expect(paths).toEqual(["/a"]);
});
