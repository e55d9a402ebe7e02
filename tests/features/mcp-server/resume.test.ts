// Clients of MCP that come back after their connection broke during a call, with the official client.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect, test } from "vitest";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { heldModel, objectOf, oldClient, raw } from "../../gateway/clients/mcp.ts";
import { type House, openHouse, TOKEN } from "../../gateway/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { openStage, order } from "../../labels/stage.ts";

const SEND = {
  name: "sessions_send",
  arguments: { sessionKey: "main", message: "work", timeoutSeconds: 600 },
};

/** `at once`: the connection breaks after the first event. `at the end`: after the gateway has answered. */
type Break = "at once" | "at the end";

/** Returns a response of which only the first event arrives. */
async function brokenOff(response: Response, when: Break, cut: AbortController): Promise<Response> {
  const reader = response.body?.getReader();
  if (reader === undefined) throw new Error("the response has no body");
  const first = await reader.read();
  if (when === "at once") cut.abort();
  else while (!(await reader.read()).done);
  const body = new ReadableStream<Uint8Array>({
    start(to) {
      if (first.value !== undefined) to.enqueue(first.value);
    },
    pull: (to) => to.error(new Error("the connection broke")),
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

/** Connects the official client over a connection that breaks during the calls of tools. */
async function unluckyClient(house: House, when: Break): Promise<{ client: Client; eventIds: string[] }> {
  const eventIds: string[] = [];
  const broken: typeof fetch = async (url, init) => {
    const again = new Headers(init?.headers).get("last-event-id");
    if (again !== null) eventIds.push(again);
    const isCall =
      String(init?.body).includes('"tools/call"') && String(init?.body).includes("sessions_send");
    if (!isCall) return fetch(url, init);
    const cut = new AbortController();
    return brokenOff(await fetch(url, { ...init, signal: cut.signal }), when, cut);
  };
  const requestInit = { headers: { authorization: `Bearer ${TOKEN}` } };
  const url = new URL(`${house.http}/mcp?handle=patient`);
  const wire = new StreamableHTTPClientTransport(url, { requestInit, fetch: broken });
  const client = new Client({ name: "patient", version: "1.0.0" });
  cleanup(() => client.close());
  await client.connect(wire as Parameters<Client["connect"]>[0]);
  return { client, eventIds };
}

const inbox = async (client: Client): Promise<string> =>
  JSON.stringify(objectOf(await client.callTool({ name: "sessions_inbox" })).messages);

test("RS2: a client whose connection breaks while it waits learns that the answer comes to its inbox", async () => {
  const model = heldModel();
  const house = await openHouse({ play: model.play });
  const { client } = await unluckyClient(house, "at once");
  const result = objectOf(await client.callTool(SEND));
  expect(result).toMatchObject({ status: "error", code: "outcome_unknown", runId: expect.any(String) });
  expect(result.error).toContain("the message was accepted");
  model.answer("the fruit of long work");
  await expect.poll(() => inbox(client)).toContain("the fruit of long work");
});

test("RS2: a client that lost a written answer gets it again, and nothing comes to its inbox", async () => {
  const house = await openHouse({ play: () => "a quick answer" });
  const { client } = await unluckyClient(house, "at the end");
  expect(objectOf(await client.callTool(SEND))).toMatchObject({ status: "ok", reply: "a quick answer" });
  expect(await inbox(client)).toBe("[]");
});

test("another client cannot read or end a call by its event id, and a wrong id opens the usual stream", async () => {
  const model = heldModel();
  const house = await openHouse({ play: model.play });
  const { client, eventIds } = await unluckyClient(house, "at the end");
  const sent = client.callTool(SEND);
  await model.started;
  const asked = await raw(house, {
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    headers: { "mcp-protocol-version": "2025-11-25" },
  });
  expect(await asked.text()).not.toContain("id: ");
  model.answer("for its sender");
  expect(objectOf(await sent)).toMatchObject({ status: "ok", reply: "for its sender" });
  const come = (id: string): Promise<Response> =>
    fetch(`${house.http}/mcp?handle=stranger`, {
      headers: { authorization: `Bearer ${TOKEN}`, accept: "text/event-stream", "last-event-id": id },
    });
  expect(await (await come(eventIds[0] ?? "")).text()).toContain("outcome_unknown");
  for (const id of ["x", "W10", Buffer.from('["mcp:x"]').toString("base64url"), "A".repeat(5_000)]) {
    const stream = await come(id);
    expect(stream.status).toBe(200);
    await stream.body?.cancel();
  }
});

test("I15: an answer that a client reads again brings its labels again", async () => {
  const stage = await openStage({ page: () => "news" });
  await stage.ended(await stage.tell(order("fetch", { url: stage.evil.url("/page") })));
  const { client, eventIds } = await unluckyClient(stage.house, "at the end");
  await client.callTool(SEND);
  const key = "agent:main:mcp:patient";
  await stage.client.request("labels.release", { sessionKey: key });
  const headers = { authorization: `Bearer ${TOKEN}`, "last-event-id": eventIds[0] ?? "" };
  await (await fetch(`${stage.house.http}/mcp?handle=patient`, { headers })).text();
  const labels = (await getSession(stage.house.store.db, key))?.labels;
  expect(labels?.outside?.map(({ source }) => source.split(":")[0])).toEqual(["web 127.0.0.1"]);
});

test("only clients of revision 2025-11-25 and later get an event without data", async () => {
  const house = await openHouse();
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 5,
    method: "tools/call",
    params: { name: "sessions_list" },
  });
  const told = async (revision: string): Promise<string> => {
    const headers = { "mcp-protocol-version": revision, "x-parley-handle": "laptop" };
    return (await raw(house, { body, headers })).text();
  };
  expect(await told("2025-11-25")).toMatch(/^id: [\w-]+\nretry: 1000\ndata: \n\n/);
  expect(await told("2025-06-18")).not.toMatch(/^id:/m);
  expect(
    await oldClient(house, "laptop").then((client) => client.callTool({ name: "sessions_list" })),
  ).toBeTruthy();
});
