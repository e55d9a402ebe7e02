// Clients that disconnect and gateways that stop during a run, and runs that another process executes.

import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import type OpenAI from "openai";
import { expect } from "vitest";
import { sharedWorld } from "../../../src/engine/cluster/shared-world.ts";
import type { Store } from "../../../src/store/sql.ts";
import { heldPlay, openAi, said } from "../../gateway/clients/openai.ts";
import { type House, openHouse, type Play, TOKEN } from "../../gateway/kit.ts";
import { test } from "../../kit/deep.ts";
import { embeddedGround } from "../../kit/engine/cluster.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { mortalProcess } from "../../kit/engine/mortal-store.ts";
import { whole } from "../../kit/live-text.ts";
import { until } from "../../kit/until.ts";
import { allArchived, openAiSessions, runStates } from "./kit.ts";

const MODEL = "parley/main";
const UNNAMED = { model: MODEL, messages: [said("Hello")] };
const NAMED = { ...UNNAMED, user: "anne" };

async function keyOf(house: House): Promise<string> {
  return (await openAiSessions(house))[0]?.key ?? "";
}

/** Resolves when the only run of the only session has this state. */
function untilRunIs(house: House, state: string): Promise<true> {
  return until(async () => (await runStates(house, await keyOf(house))).join() === state);
}

test("OA3: if the client of a request without a session name disconnects, its run is aborted, streamed or not", async () => {
  for (const stream of [false, true]) {
    const held = heldPlay();
    const house = await openHouse({ play: held.play });
    const leave = new AbortController();
    const asked = openAi(house).chat.completions.create({ ...UNNAMED, stream }, { signal: leave.signal });
    const outcome = asked.catch(() => "left");
    await held.begun;
    if (stream) await asked;
    leave.abort();
    await outcome;
    await untilRunIs(house, "aborted");
    await allArchived(house);
  }
});

test("OA3: if a client aborts its own stream while reading, its run is aborted", async () => {
  const held = heldPlay();
  const house = await openHouse({ play: held.play });
  const stream = await openAi(house).chat.completions.create({ ...UNNAMED, stream: true });
  const handle = await held.begun;
  handle.text(whole("Hello, and "));
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta.content !== "Hello, and ") continue;
    stream.controller.abort();
  }
  await untilRunIs(house, "aborted");
});

test("OA3: if a socket breaks without a close, its client counts as disconnected", async () => {
  const held = heldPlay();
  const house = await openHouse({ play: held.play });
  const body = JSON.stringify({ ...UNNAMED, stream: true });
  const socket = connect(house.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${TOKEN}\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  await held.begun;
  socket.resetAndDestroy();
  await untilRunIs(house, "aborted");
});

test("OA3: a run in a named session, or with an Idempotency-Key, continues without its client", async () => {
  for (const [body, headers] of [
    [NAMED, {}],
    [UNNAMED, { "Idempotency-Key": "request-1" }],
  ] as const) {
    const held = heldPlay();
    const house = await openHouse({ play: held.play });
    const leave = new AbortController();
    const request = { ...body, stream: true as const };
    const asked = openAi(house).chat.completions.create(request, { signal: leave.signal, headers });
    await asked;
    await held.begun;
    leave.abort();
    // A second request: when it is answered, the gateway has noticed that the first client is gone.
    await openAi(house).models.list();
    held.end("Done all the same");
    await untilRunIs(house, "ok");
  }
});

test("with an Idempotency-Key, a client that reconnects gets the answer", async () => {
  const held = heldPlay();
  const house = await openHouse({ play: held.play });
  const headers = { "Idempotency-Key": "request-1" };
  const leave = new AbortController();
  const first = openAi(house).chat.completions.create(UNNAMED, { signal: leave.signal, headers });
  const outcome = first.catch(() => "left");
  await held.begun;
  leave.abort();
  await outcome;
  const again = openAi(house).chat.completions.create(UNNAMED, { headers });
  held.end("Here it is");
  expect((await again).choices[0]?.message.content).toBe("Here it is");
});

test("if the gateway stops, the answer says so, and the run is not lost", async () => {
  const held = heldPlay();
  const house = await openHouse({ play: held.play });
  const plain = openAi(house)
    .chat.completions.create(UNNAMED)
    .catch((error: unknown) => error);
  await held.begun;
  const stream = await openAi(house).chat.completions.create({ ...NAMED, stream: true });
  const response = await openAi(house).responses.create({ model: MODEL, input: "x", stream: true });
  const read = async (events: AsyncIterable<unknown>) => {
    for await (const _ of events);
  };
  const reads = [read(stream), read(response)].map((reading) => reading.catch((error: unknown) => error));
  const closed = house.gateway.close();
  const refused = await plain;
  expect(refused).toMatchObject({ status: 503, code: "shutting_down" });
  expect((refused as InstanceType<typeof OpenAI.APIError>).headers?.get("x-should-retry")).toBe("false");
  for (const error of await Promise.all(reads)) expect(error).toMatchObject({ code: "shutting_down" });
  await closed;
  held.end("Done");
  await until(async () => {
    const sessions = await openAiSessions(house);
    const states = await Promise.all(sessions.map(({ key }) => runStates(house, key)));
    return states.flat().join() === "ok,ok,ok";
  });
});

test("a wrong host name is refused in OpenAI's error format", async () => {
  const house = await openHouse();
  const headers = { host: "evil.example", authorization: `Bearer ${TOKEN}` };
  const answer = await new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    const request = httpRequest(`${house.http}/v1/models`, { headers }, (response) => {
      let body = "";
      response.on("data", (piece) => {
        body += piece;
      });
      response.on("end", () => resolve({ status: response.statusCode, body }));
    });
    request.on("error", reject);
    request.end();
  });
  expect(answer.status).toBe(403);
  expect(JSON.parse(answer.body)).toMatchObject({
    error: { code: "origin_denied", type: "permission_error" },
  });
});

/** Opens one of several gateways over one store. */
async function member(disk: Store, play: Play, dies = false): Promise<House & { die(): void }> {
  const mortal = mortalProcess({ ...disk, close: async () => {} }, sharedWorld(disk, quietWorld()));
  const house = await openHouse({ disk: mortal.store, world: mortal.world, play, dies });
  return { ...house, die: mortal.die };
}

test("the run of another process can be streamed; its end is read from the row of the run", async () => {
  const ground = await embeddedGround();
  const held = heldPlay();
  const first = await member(await ground.open(quietWorld()), held.play);
  const second = await member(await ground.open(quietWorld()), () => "never asked");
  const headers = { "Idempotency-Key": "request-1" };
  const request = { ...UNNAMED, stream: true as const };
  const leave = new AbortController();
  await openAi(first).chat.completions.create(request, { headers, signal: leave.signal });
  const handle = await held.begun;
  leave.abort();
  const stream = await openAi(second).chat.completions.create(request, { headers });
  const texts: string[] = [];
  for await (const chunk of stream) {
    const text = chunk.choices[0]?.delta.content;
    if (text === "") handle.text(whole("From far "));
    else if (text != null) texts.push(text);
    if (text === "From far ") {
      // The remaining events are lost, but the row of the run contains its end.
      ground.cutWire(true);
      held.end("From far away");
    }
  }
  expect(texts).toEqual(["From far ", "away"]);
});

test.deep(
  "if the process of a run dies, another one takes the run over, and the stream continues with the new text",
  async () => {
    const ground = await embeddedGround();
    const held = heldPlay();
    const first = await member(await ground.open(quietWorld()), held.play, true);
    const second = await member(await ground.open(quietWorld()), (handle) => {
      handle.text(whole("Once more "));
      return "Once more from the start";
    });
    const headers = { "Idempotency-Key": "request-1" };
    const request = { ...UNNAMED, stream: true as const };
    const left = openAi(first).chat.completions.create(request, { headers });
    const handle = await held.begun;
    const stream = await openAi(second).chat.completions.create(request, { headers });
    let text = "";
    for await (const chunk of stream) {
      const piece = chunk.choices[0]?.delta.content;
      if (piece === "") handle.text(whole("Once upon "));
      text += piece ?? "";
      if (piece === "Once upon ") first.die();
    }
    expect(text).toBe("Once upon \n\nOnce more from the start");
    (await left).controller.abort();
  },
);
