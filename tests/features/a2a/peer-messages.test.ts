// Messages between two gateways in this process: hostile peers, limits, and a peer that stays away.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import type { GatewayClient } from "../../../src/contract/client/node.ts";
import { optional } from "../../../src/core/optional.ts";
import { labelFrom } from "../../../src/core/rules/labels/labels.ts";
import { createCards } from "../../../src/features/a2a/door/card.ts";
import { addLabels } from "../../../src/store/queries/labels.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { limitsIn, runStates } from "../../gateway/clients/a2a.ts";
import { openPeer } from "../../gateway/clients/mcp.ts";
import { heldPlay } from "../../gateway/clients/openai.ts";
import { type House, type HouseOptions, openHouse } from "../../gateway/kit.ts";
import { cleanup, openStore, quietWorld } from "../../kit/engine/engine.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { takeRun } from "../../kit/store/take-run.ts";
import { fakeWorld } from "../../kit/world.ts";
import { settingsWith } from "../../tools/app.ts";

const HERE = "agent:main:main";
const FAR = "peer:lab/agent:research:main";
const DAY_MS = 86_400_000;

/** Opens a gateway whose policy admits its agents and those of peers. */
const open = ({ choices, ...more }: HouseOptions = {}): Promise<House> => {
  const agentToAgent = { enabled: true, allow: ["main", "research", "peer:*"] };
  const model =
    more.play === undefined && more.model === undefined
      ? scriptedModel(({ entries }) => `echo ${entries.length}`)
      : undefined;
  return openHouse({
    ...optional({ model }),
    ...more,
    choices: { tools: { agentToAgent }, labels: { mode: "off" }, ...choices },
  });
};

/** Pairs two gateways: `near` knows the other one as `lab`, which knows it as `desk`. */
async function pair(near: House, far: House): Promise<[GatewayClient, GatewayClient]> {
  const [client, there] = [await near.client(), await far.client()];
  const { code = "" } = await there.request("peers.add", {
    name: "desk",
    url: near.http,
    agents: ["research"],
  });
  await client.request("peers.add", { name: "lab", url: far.http, code, agents: ["main"] });
  return [client, there];
}

type Answer = Readonly<Record<string, unknown>>;

/** Calls a tool as the main agent. */
async function invoke(client: GatewayClient, name: string, given: object): Promise<Answer> {
  const params = { name, sessionKey: HERE, arguments: { ...given } };
  return (await client.request("tools.invoke", params)) as unknown as Answer;
}

const send = (client: GatewayClient, message = "Hello", timeoutSeconds = 20) =>
  invoke(client, "sessions_send", { sessionKey: FAR, message, timeoutSeconds });

test("a message reaches the peer, and its answer comes back", async () => {
  const [client] = await pair(await open(), await open());
  expect(await send(client)).toMatchObject({ status: "ok", reply: "echo 1", receipt: "answered" });
});

test("I15: labels go to a peer and come back by the kinds of their sources, without names", async () => {
  const [near, far] = [await open(), await open()];
  const [client, there] = await pair(near, far);
  await client.request("chat.send", { sessionKey: HERE, message: "Hello" });
  const mark = async ({ store }: House, key: string, source: string): Promise<void> => {
    const { sessionId = "" } = (await getSession(store.db, key)) ?? {};
    await store.transaction((tx) =>
      addLabels(tx, { key, sessionId }, labelFrom("outside", source, 1), { at: 1 }),
    );
  };
  await mark(near, HERE, "web secret.example");
  const first = await there.request("chat.send", { sessionKey: "agent:research:main", message: "Hello" });
  await there.request("agent.wait", { runId: first.runId, timeoutMs: 20_000 });
  await mark(far, "agent:research:main", "mcp mail");
  expect(await send(client)).toMatchObject({ status: "ok" });
  const sourcesIn = async (at: GatewayClient, sessionKey: string) => {
    const { labels } = await at.request("labels.explain", { sessionKey });
    return [labels.outside, labels.private].map((marks = []) => marks.map(({ source }) => source).sort());
  };
  expect(await sourcesIn(there, "agent:research:main")).toEqual([
    ["mcp mail", "peer desk", "peer desk: web"],
    ["peer desk: session", "session agent:research:main"],
  ]);
  expect(await sourcesIn(client, FAR)).toEqual([
    ["peer lab", "peer lab: mcp", "web secret.example"],
    ["peer lab: session", `session ${HERE}`],
  ]);
});

test("I15: a message in a session that labels.private lists goes to the peer as private", async () => {
  const labels = { mode: "off", public: [HERE], private: [FAR] } as const;
  const [client, there] = await pair(await open({ choices: { labels } }), await open());
  expect(await send(client)).toMatchObject({ status: "ok" });
  const explained = await there.request("labels.explain", { sessionKey: "agent:research:main" });
  expect(explained.labels.private?.map(({ source }) => source)).toContain("peer desk: session");
});

test("sessions_list and sessions_history show an agent the session of the peer, and what both told each other", async () => {
  const [client, there] = await pair(await open(), await open());
  await send(client, "What is new?");
  await there.request("chat.send", { sessionKey: "agent:research:main", message: "A secret over there" });
  const { sessions } = (await invoke(client, "sessions_list", {})) as { sessions: { key: string }[] };
  expect(sessions.map(({ key }) => key)).toContain(FAR);
  const shown = JSON.stringify(await invoke(client, "sessions_history", { sessionKey: FAR }));
  expect(shown).toContain("What is new?");
  expect(shown).toContain("echo 1");
  expect(shown).not.toContain("secret");
});

test("I11: an MCP client writes to an agent of a peer, which knows its session; a person is told to ask an agent", async () => {
  const near = await open();
  const [client, there] = await pair(near, await open());
  const mcp = await openPeer(near, "version 2, newest revision");
  const sent = await mcp.call("sessions_send", { sessionKey: FAR, message: "Hello", timeoutSeconds: 20 });
  expect(sent).toMatchObject({ status: "ok", reply: "echo 1", receipt: "answered" });
  const { messages } = await there.request("chat.history", { sessionKey: "agent:research:main" });
  const sourceSessionKey = expect.stringMatching(/^peer:desk\/agent:main:mcp:/);
  expect(messages[0]).toMatchObject({ provenance: { sourceSessionKey } });
  const said = client.request("chat.send", { sessionKey: FAR, message: "Hello" });
  await expect(said).rejects.toMatchObject({
    reason: "send_denied",
    message: expect.stringContaining("agent"),
  });
});

test("a message expires if the peer stays away for seven days", async () => {
  const far = await open();
  const near = await open();
  const { dir } = near;
  const [client] = await pair(near, far);
  await far.stop();
  const { messageId } = await send(client, "Are you there?", 0);
  const receipt = async (from: GatewayClient) =>
    JSON.stringify(await invoke(from, "session_status", { messageId }));
  expect(await receipt(client)).toContain("queued");
  await near.stop();
  const disk = await openStore(dir);
  await disk.transaction(async (tx) => {
    const earlier = tx.updateTable("runs").set((eb) => ({ accepted_at: eb("accepted_at", "-", 7 * DAY_MS) }));
    await earlier.execute();
  });
  const again = await (await open({ dir, disk })).client();
  await expect.poll(() => receipt(again)).toContain("expired");
});

test("a message stays queued while the queue over there is full", async () => {
  const held = heldPlay();
  const { session } = settingsWith();
  const choices = { session: { ...session, queueMax: 1 } };
  const world = fakeWorld({ clock: "real" });
  const [client, there] = await pair(await open({ world }), await open({ choices, play: held.play }));
  const say = (idempotencyKey: string) =>
    there.request("chat.send", { sessionKey: "agent:research:main", message: "Work", idempotencyKey });
  await say("first");
  await held.begun;
  await say("second");
  const { messageId } = await send(client, "Hello", 0);
  const receipt = async () => JSON.stringify(await invoke(client, "session_status", { messageId }));
  await expect.poll(() => world.logged.map(({ text }) => text)).toContain("a peer is away");
  expect(await receipt()).toContain("queued");
  held.end("Done");
  await expect.poll(receipt).toContain("answered");
});

test("I8: a limit of the peer's chains counts sends of both gateways, and declines the message", async () => {
  const session = { agentToAgent: { maxPingPongTurns: 0, maxHops: 0, maxChainRuns: 9 } };
  const [client] = await pair(await open(), await open({ choices: { session } }));
  expect(await send(client)).toMatchObject({ status: "error", code: "chain_limit", receipt: "declined" });
});

test("I8: a send to a peer is one hop, there and on the way back", async () => {
  const back = { sessionKey: "peer:desk/agent:main:main", message: "Well?", timeoutSeconds: 0 };
  const model = scriptedModel(({ entries }) =>
    entries.length === 1 ? { toolCalls: [{ name: "sessions_send", arguments: back }] } : "Done",
  );
  const [near, far] = [await open(), await open({ model })];
  const [client] = await pair(near, far);
  const hopsIn = async ({ store }: House, sessionKey: string) => {
    const runs = store.db.selectFrom("runs").select("hop").where("session_key", "=", sessionKey);
    return (await runs.orderBy("hop").execute()).map(({ hop }) => hop);
  };
  await send(client);
  await expect.poll(() => hopsIn(near, HERE)).toContain(2);
  // The answer to the second send may already have begun a further run there.
  expect((await hopsIn(far, "agent:research:main"))[0]).toBe(1);
});

test("a peer that removed this gateway is shown as refused, and a message to it fails and its sender is told", async () => {
  const [near, far] = [await open(), await open()];
  const [client, there] = await pair(near, far);
  await there.request("peers.remove", { name: "desk" });
  // Any number of requests get the same answer, so that none waits for a peer that will never answer.
  for (let asked = 0; asked < 12; asked += 1)
    expect((await client.request("peers.list", {})).peers).toMatchObject([{ state: "refused" }]);
  const why = /refuses this gateway \(HTTP 401\): this gateway has no peer with your key/;
  expect(await send(client)).toMatchObject({
    ...{ status: "error", receipt: "failed" },
    error: expect.stringMatching(why),
  });
  await send(client, "Hello again", 0);
  const told = async () => JSON.stringify(await client.request("chat.history", { sessionKey: HERE }));
  await expect.poll(told).toMatch(why);
});

const LIMITED = {
  session: { agentToAgent: { maxPingPongTurns: 0, maxHops: 9, maxChainRuns: 9, maxChainTokens: 100_000 } },
};

test("I8: the rest of a chain's budget goes along and limits the chain at the peer", async () => {
  const [near, far] = [await open({ choices: LIMITED }), await open()];
  const [client] = await pair(near, far);
  expect(await send(client)).toMatchObject({ status: "ok" });
  expect(await limitsIn(far)).toEqual([100_000]);
});

test("I8: a peer cannot limit a chain that began here", async () => {
  const back = { sessionKey: "peer:desk/agent:main:main", message: "Well?", timeoutSeconds: 0 };
  const model = scriptedModel(({ entries }) =>
    entries.length === 1 ? { toolCalls: [{ name: "sessions_send", arguments: back }] } : "Done",
  );
  const [near, far] = [await open(), await open({ choices: LIMITED, model })];
  const [client] = await pair(near, far);
  expect(await send(client)).toMatchObject({ status: "ok" });
  const texts = async () => JSON.stringify(await client.request("chat.history", { sessionKey: HERE }));
  await expect.poll(texts).toContain("Well?");
  expect(await limitsIn(near)).not.toContainEqual(expect.any(Number));
});

test("I1: a run that another process has does not change its task at a peer", async () => {
  const answer = Promise.withResolvers<string>();
  const [near, far] = [await open(), await open({ model: scriptedModel(() => answer.promise) })];
  const [client] = await pair(near, far);
  const { runId } = await send(client, "Hello", 0);
  const tasks = () => near.store.db.selectFrom("remote_tasks").selectAll().execute();
  await expect.poll(tasks).toHaveLength(1);
  await takeRun(near.store, String(runId));
  const known = await tasks();
  answer.resolve("All is well");
  await expect.poll(() => runStates(far)).toEqual(["ok"]);
  await near.stop();
  const disk = await openStore(near.dir);
  expect(await disk.db.selectFrom("remote_tasks").selectAll().execute()).toEqual(known);
});

test("RT3: an abort cancels the task at a peer even while no gateway executes the run", async () => {
  const model = scriptedModel(() => new Promise<never>(() => {}));
  const [near, far] = [await open({ model }), await open({ model })];
  const { dir } = near;
  const [client] = await pair(near, far);
  await client.request("chat.send", { sessionKey: HERE, message: "Think" });
  await send(client, "Hello", 0);
  await expect.poll(() => runStates(far)).toEqual(["running"]);
  const tasks = () => near.store.db.selectFrom("remote_tasks").select("task_id").execute();
  await expect.poll(tasks).toEqual([{ task_id: expect.any(String) }]);
  await near.stop();
  const disk = await openStore(dir);
  // A run that crashed pauses, so the other run takes the only slot.
  const later = Date.now() + 3_600_000;
  await disk.transaction((tx) =>
    tx.updateTable("runs").set({ ready_at: later }).where("session_key", "=", FAR).execute(),
  );
  const again = await open({ dir, disk, model, choices: { maxConcurrent: 1 } });
  await expect.poll(() => runStates(again)).toEqual(["running", "queued"]);
  const aborted = (await again.client()).request("chat.abort", { sessionKey: FAR });
  expect(await aborted).toMatchObject({ aborted: true });
  await expect.poll(() => runStates(far)).toEqual(["aborted"]);
});

test("sessions_spawn starts no sub-agent at a peer", async () => {
  const [client, there] = await pair(await open(), await open());
  const spawned = await invoke(client, "sessions_spawn", { agentId: "peer:lab/research", task: "Dig" });
  expect(spawned).toMatchObject({ status: "error", code: "invalid_argument" });
  const { sessions } = await there.request("sessions.list", {});
  expect(sessions.filter(({ key }) => key.includes("subagent"))).toEqual([]);
});

test("a gateway has at most 64 peers and invitations", async () => {
  const client = await (await open()).client();
  for (let count = 1; count <= 64; count += 1) await client.request("peers.add", { name: `peer-${count}` });
  await expect(client.request("peers.add", { name: "one-more" })).rejects.toThrow("at most 64 peers");
  await client.request("peers.add", { name: "peer-1" });
});

/** Starts a web server in place of a peer. Returns its address, and the requests for anything but cards. */
async function impostor(answer: (path: string, response: ServerResponse, given: Answer) => Promise<unknown>) {
  const others: string[] = [];
  const server = createServer(async (request, response) => {
    const { method, url: path = "" } = request;
    if (method !== "GET") others.push(`${method} ${path}`);
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const given = pieces.length === 0 ? {} : JSON.parse(Buffer.concat(pieces).toString());
    response.end(JSON.stringify(await answer(path, response, given)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  cleanup(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, others };
}

/** Returns the cards that a gateway shows at this address. */
function cardsOf({ settings, engine }: House, origin: () => string) {
  const cards = createCards({ settings, engine, world: quietWorld() }, "1");
  const agent = settings.agents.find(({ id }) => id === "research");
  return async (path: string) =>
    path.endsWith("jwks.json") ? cards.keys() : agent && cards.card(agent, origin());
}

test("RC2: a card of the peer that another key has signed is refused, and nothing is sent", async () => {
  const [client] = await pair(await open(), await open());
  const cards = cardsOf(await open(), () => url);
  const { url, others } = await impostor(cards);
  await client.request("peers.update", { name: "lab", url });
  expect(await send(client)).toMatchObject({
    status: "error",
    error: expect.stringContaining("is signed by"),
  });
  expect(others).toEqual([]);
});

test("files of a hostile peer get safe names, lose credentials, and are refused if they are too large", async () => {
  const far = await open();
  const agentToAgent = { enabled: true, allow: ["main", "peer:*"] };
  const near = await open({ choices: { tools: { agentToAgent, sendFile: { maxBytes: 1_000 } } } });
  const [client] = await pair(near, far);
  const file = (filename: string, text: string) => ({
    ...{ raw: btoa(text), filename, mediaType: "text/plain" },
  });
  const secret = "the key is sk-abcdefghij0123456789abcdefghij";
  const parts = [file("../../.ssh/authorized_keys", secret), file("large.txt", "x".repeat(1_001))];
  const artifacts = [{ artifactId: "files", parts: [{ text: "Done" }, ...parts] }];
  const task = { id: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" }, artifacts };
  const cards = cardsOf(far, () => url);
  const { url } = await impostor(async (path, response, { id }) => {
    if (path.endsWith(".json")) return cards(path);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { task } })}\n\n`);
  });
  await client.request("peers.update", { name: "lab", url });
  expect(await send(client)).toMatchObject({
    ...{ status: "ok", reply: 'Done\n\n[It also sent "large.txt", not kept here.]' },
  });
  const files = await near.store.db.selectFrom("sent_files").select(["name", "content"]).execute();
  expect(files.map(({ name, content }) => [name, atob(content)])).toEqual([
    ["authorized_keys", "the key is [redacted]"],
  ]);
});

test("I2: a message stays queued if the peer dies between its card and its key", async () => {
  const far = await open();
  const [client] = await pair(await open(), far);
  const cards = cardsOf(far, () => url);
  let keys = 0;
  const { url } = await impostor(async (path, response) => {
    if (path.endsWith("jwks.json")) keys += 1;
    if (!path.endsWith("agent-card.json")) return void response.destroy();
    return cards(path);
  });
  await client.request("peers.update", { name: "lab", url });
  const { messageId } = await send(client, "Hello", 0);
  await expect.poll(() => keys).toBeGreaterThan(1);
  expect(JSON.stringify(await invoke(client, "session_status", { messageId }))).toContain("queued");
});

test("a message to a peer that refuses for a while waits, and its task is followed after that", async () => {
  const far = await open();
  const [client] = await pair(await open(), far);
  const cards = cardsOf(far, () => url);
  // A proxy before the peer refuses first. Later the clocks differ while the task is read.
  const statuses = [403];
  const task = (state: string) => ({
    ...{ id: "t", contextId: "c", status: { state: `TASK_STATE_${state}` } },
    artifacts: [{ artifactId: "a", parts: [{ text: "Done" }] }],
  });
  const { url, others } = await impostor(async (path, response, { id, method }) => {
    const status = statuses.shift();
    if (status !== undefined) {
      response.writeHead(status);
      return status === 403 ? "denied" : { error: { message: "its time differs by 400 s", details: {} } };
    }
    if (path.endsWith(".json")) return cards(path);
    if (method === "GetTask") return { jsonrpc: "2.0", id, result: task("COMPLETED") };
    statuses.push(401);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { task: task("WORKING") } })}\n\n`);
  });
  await client.request("peers.update", { name: "lab", url });
  expect(await send(client)).toMatchObject({ status: "ok", reply: "Done", receipt: "answered" });
  expect(others).toHaveLength(3);
});

test("a message to an agent that the peer no longer exposes fails at once", async () => {
  const [client, there] = await pair(await open(), await open());
  await there.request("peers.update", { name: "desk", agents: [] });
  expect(await send(client)).toMatchObject({
    ...{ status: "error", receipt: "failed" },
    error: expect.stringContaining("the peer does not offer this agent"),
  });
});

test("RC1: a genuine card at another host, and a redirect to the peer, get nothing", async () => {
  const far = await open();
  const [client, there] = await pair(await open(), far);
  const relaying = await impostor(cardsOf(far, () => far.http));
  await client.request("peers.update", { name: "lab", url: relaying.url });
  expect(await send(client)).toMatchObject({ status: "error", error: expect.stringContaining("host") });
  const redirecting = await impostor(async (path, response) => {
    response.writeHead(307, { location: far.http + path });
  });
  await client.request("peers.update", { name: "lab", url: redirecting.url });
  expect(await send(client)).toMatchObject({ status: "error" });
  expect([...relaying.others, ...redirecting.others]).toEqual([]);
  const { messages } = await there.request("chat.history", { sessionKey: "agent:research:main" });
  expect(messages).toEqual([]);
});
