// A client that waits for an answer while the gateway stops: the client gets an error, and later finds the
// answer in its inbox, once.

import { sql } from "kysely";
import { expect } from "vitest";
import { StoreProblem } from "../../src/store/problems.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../src/store/sql.ts";
import { test } from "../kit/deep.ts";
import { openStoreOn, temporaryFolder } from "../kit/engine/engine.ts";
import { sendAs } from "../kit/engine/flow-app.ts";
import { until } from "../kit/until.ts";
import { type Answer, heldModel, openPeer, type Peer, SPEAKERS } from "./clients/mcp.ts";
import { type House, openHouse, quiet } from "./kit.ts";

const SEND = { sessionKey: "main", message: "work", timeoutSeconds: 60 };
const ME = { headers: { "x-parley-handle": "waiting" } };

async function inbox(peer: Peer): Promise<string[]> {
  const { messages } = (await peer.call("sessions_inbox")) as { messages: Answer[] };
  return messages.map((message) => String(message.text));
}

const notice = (runId: string, answer: string): string =>
  `Notice from the gateway about your earlier message to main (run ${runId}): it was answered:\n\n| ${answer}`;

/** Starts a client that waits for an answer. The model has not answered yet. */
async function waiting(speaker: (typeof SPEAKERS)[number]) {
  const model = heldModel();
  const dir = temporaryFolder();
  const house = await openHouse({ play: model.play, dir });
  const peer = await openPeer(house, speaker, ME);
  const sent = peer.call("sessions_send", SEND);
  await model.started;
  return { model, dir, house, sent };
}

test.each(SPEAKERS)(
  "%s: a waiting client is notified of a planned stop, and the answer arrives in its inbox",
  async (speaker) => {
    const { dir, house, sent } = await waiting(speaker);
    const stopping = house.stop();
    const told = await sent;
    expect(told).toMatchObject({
      status: "error",
      code: "shutting_down",
      error: expect.stringContaining("the message was accepted, and its run continues"),
    });
    await stopping;
    const again = await openHouse({ dir, play: () => "the late answer" });
    const back = await openPeer(again, speaker, ME);
    await quiet(again);
    const key = "the late answer";
    expect((await inbox(back)).filter((text) => text.includes(key))).toEqual([
      notice(String(told.runId), key),
    ]);
  },
);

/**
 * Sends as a client, and returns before the gateway notices that the answer was written to the connection.
 */
async function answered(house: House): Promise<string> {
  await openPeer(house, "version 1", ME);
  const { db } = house.store;
  const requester = await getSession(db, "agent:main:mcp:waiting");
  const target = await getSession(db, "agent:main:main");
  if (requester === undefined || target === undefined) throw new Error("a session is missing");
  const result = await sendAs(house, {
    ...{ requester, target, callId: "call-1", text: "work", timeoutSeconds: 60 },
    ...{ signal: new AbortController().signal, confirmsAnswers: true },
  });
  expect(result).toMatchObject({ status: "ok", reply: "echo work" });
  return String(result.runId);
}

async function notices(house: House): Promise<string[]> {
  await quiet(house);
  const texts = await inbox(await openPeer(house, "version 1", ME));
  return texts.filter((text) => text.startsWith("Notice"));
}

test("if a gateway was killed before it wrote an answer to the client's connection, the answer arrives once in the inbox", async () => {
  const dir = temporaryFolder();
  const house = await openHouse({ dir });
  const runId = await answered(house);
  await house.stop();
  for (let start = 0; start < 2; start++) {
    const again = await openHouse({ dir });
    expect(await notices(again)).toEqual([notice(runId, "echo work")]);
    await again.stop();
  }
});

test("a client that disconnects before its answer is written finds the answer once in its inbox; other clients get no notice", async () => {
  const dir = temporaryFolder();
  const house = await openHouse({ dir });
  const runId = await answered(house);
  await house.engine.callerWaits.lose("call-1");
  await house.engine.callerWaits.lose("call-1");
  await house.engine.callerWaits.confirm("call-1");
  expect(await notices(house)).toEqual([notice(runId, "echo work")]);

  const peer = await openPeer(house, "version 1", ME);
  expect(await peer.call("sessions_send", SEND)).toMatchObject({ status: "ok", reply: "echo work" });
  await expect.poll(() => waitStates(house)).toEqual(["answered", "lost"]);
  await house.stop();
  expect(await notices(await openHouse({ dir }))).toHaveLength(1);
});

const DESK = "agent:main:mcp:desk";

/**
 * Lets a client wait for another client, whose inbox is then reset or deleted. Returns the call's result.
 */
async function resetWhileWaiting(house: House, method: "sessions.reset" | "sessions.delete") {
  const { db } = house.store;
  await openPeer(house, "version 1", ME);
  await openPeer(house, "version 1", { headers: { "x-parley-handle": "desk" } });
  const requester = await getSession(db, "agent:main:mcp:waiting");
  const target = await getSession(db, DESK);
  if (requester === undefined || target === undefined) throw new Error("a session is missing");
  const sent = sendAs(house, {
    ...{ requester, target, callId: "call-1", text: "work", timeoutSeconds: 60 },
    ...{ signal: new AbortController().signal, confirmsAnswers: true },
  });
  await expect.poll(() => waitStates(house)).toEqual(["open"]);
  await (await house.client()).request(method, { key: DESK });
  return sent;
}

test.each([
  ["sessions.reset", "reset"],
  ["sessions.delete", "deleted"],
] as const)(
  "%s of an inbox: if a waiting client's connection breaks before the result, the result arrives once in its inbox",
  async (method, done) => {
    const house = await openHouse({ dir: temporaryFolder() });
    const result = await resetWhileWaiting(house, method);
    expect(result).toMatchObject({ status: "error", code: `session_${done}` });
    await house.engine.callerWaits.lose("call-1");
    await house.engine.callerWaits.lose("call-1");
    const told = await notices(house);
    expect(told).toEqual([
      expect.stringContaining(`it expired in the inbox: its session was ${done} before an answer came.`),
    ]);
  },
);

/**
 * Returns a store that loses the answer to the commit after `holdNext`, and makes that commit only after
 * `release`.
 */
function holding(store: Store) {
  let isNext = false;
  const held = Promise.withResolvers<void>();
  const transaction: Store["transaction"] = async (work) => {
    if (!isNext) return store.transaction(work);
    isNext = false;
    const { promise: lost, reject } = Promise.withResolvers<never>();
    const done = store.transaction(async (tx) => {
      const value = await work(tx);
      reject(new StoreProblem("unreachable", "store", { detail: "connection lost", inDoubt: true }));
      await held.promise;
      return value;
    });
    return Promise.race([done, lost]);
  };
  const holdNext = (): void => {
    isNext = true;
  };
  return { store: { ...store, transaction }, holdNext, release: held.resolve };
}

test.deep(
  "CW1: if the commit of a message is late and its client is gone, the answer arrives once in the inbox",
  async () => {
    const disk = await openStoreOn("postgres", temporaryFolder());
    const { store, holdNext, release } = holding(disk);
    const house = await openHouse({ disk: store });
    await openPeer(house, "version 1", ME);
    const requester = await getSession(disk.db, "agent:main:mcp:waiting");
    const target = await getSession(disk.db, "agent:main:main");
    if (requester === undefined || target === undefined) throw new Error("a session is missing");
    holdNext();
    const sent = sendAs(house, {
      ...{ requester, target, callId: "call-1", text: "work", timeoutSeconds: 60 },
      ...{ signal: new AbortController().signal, confirmsAnswers: true },
    });
    await expect(sent).rejects.toThrow("connection lost");
    const lost = house.engine.callerWaits.lose("call-1").then(() => "done");
    const blocked = async (): Promise<boolean> => {
      const { rows } = await sql`select 1 from pg_locks where not granted`.execute(disk.db);
      return rows.length > 0;
    };
    await Promise.race([lost, until(blocked)]);
    release();
    await lost;
    await until(async () => (await waitStates(house)).length > 0);
    expect(await notices(house)).toEqual([expect.stringContaining("it was answered:\n\n| echo work")]);
    // Another call of this client that sent nothing leaves no trace.
    await house.engine.callerWaits.lose("call-2");
    expect(await waitStates(house)).toEqual(["ended"]);
  },
);

async function waitStates({ store }: House): Promise<string[]> {
  const rows = await store.db.selectFrom("waits").select("state").execute();
  return rows.map(({ state }) => state).sort();
}
