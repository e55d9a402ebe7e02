// A client waits for an answer while the store refuses reads or writes for a time: it gets the answer or a
// notice in its inbox, and never both.

import { expect, test } from "vitest";
import { StoreProblem } from "../../../src/store/problems.ts";
import type { Store } from "../../../src/store/sql.ts";
import { type Answer, heldModel, openPeer, type Peer, sendAs, timeUntil } from "../../gateway/clients/mcp.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { openStore, temporaryFolder } from "../../kit/engine/engine.ts";
import { runsOf } from "../../kit/store/store-view.ts";
import { until } from "../../kit/until.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";

const ME = { headers: { "x-parley-handle": "waiting" } };
const SEND = { sessionKey: "main", message: "work", timeoutSeconds: 600 };
const ANSWER = "the answer";

type Refused = "nothing" | "reads" | "writes" | "everything";

/** Wraps a store that refuses `then` from the commit on that makes a wait `from`, until `mend` is called. */
function refusing(disk: Store, then: Refused, from: "open" | "ready" = "ready") {
  let refused: Refused = "nothing";
  let isArmed = true;
  const check = (what: "reads" | "writes"): void => {
    if (refused === "everything" || refused === what) throw new StoreProblem("unreachable", "the store");
  };
  const db = disk.db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      check("reads");
      return result;
    },
  });
  // Leaves out the read worker, so that every read can be refused.
  const { readWorker: _, ...alone } = disk;
  const transaction: Store["transaction"] = async (work) => {
    check("writes");
    const value = await disk.transaction(work);
    if (isArmed && (await waitStates(disk)).includes(from)) {
      refused = then;
      isArmed = false;
    }
    return value;
  };
  return {
    store: { ...alone, db, transaction },
    isRefusing: () => refused !== "nothing",
    mend: () => {
      refused = "nothing";
    },
  };
}

async function waitStates({ db }: Pick<Store, "db">): Promise<string[]> {
  const rows = await db.selectFrom("waits").select("state").execute();
  return rows.map(({ state }) => state);
}

interface Scene {
  readonly world: FakeWorld;
  readonly disk: Store;
  readonly house: House;
  readonly peer: Peer;
  readonly sent: Promise<Answer>;
  readonly model: ReturnType<typeof heldModel>;
  readonly isRefusing: () => boolean;
  readonly mend: () => void;
}

/** A client that waits for an answer. The model has not answered yet. */
async function waiting(then: Refused): Promise<Scene> {
  const world = fakeWorld();
  const model = heldModel();
  const dir = temporaryFolder();
  const disk = await openStore(dir, world);
  const { store, ...how } = refusing(disk, then);
  const house = await openHouse({ play: model.play, world, dir, disk: store });
  const peer = await openPeer(house, "version 1", ME);
  const sent = peer.call("sessions_send", SEND);
  await timeUntil(world, model.started);
  return { world, disk, house, peer, sent, model, ...how };
}

/** Returns the answers in the client's inbox, once the state of its wait is stored. */
async function settled({ world, disk, house, peer }: Scene, state: string): Promise<string[]> {
  await timeUntil(
    world,
    until(async () => (await waitStates(disk)).every((one) => one === state)),
  );
  // A notice would be in the inbox before this message.
  await timeUntil(world, sendAs(house, "agent:main:main", "agent:main:mcp:waiting", "last"));
  const { messages } = (await timeUntil(world, peer.call("sessions_inbox"))) as { messages: Answer[] };
  const texts = messages.map(({ text }) => String(text));
  expect(texts.at(-1)).toBe("last");
  return texts.slice(0, -1).filter((text) => text.includes(ANSWER));
}

test.each(["reads", "everything"] as const)(
  "if the store refuses %s when the answer comes, and the client gets an error, the answer comes once to its inbox",
  async (refused) => {
    const scene = await waiting(refused);
    const { world, sent, model, mend } = scene;
    model.answer(ANSWER);
    expect(await timeUntil(world, sent)).toMatchObject({ status: "error", code: "store_unavailable" });
    mend();
    expect(await settled(scene, "lost")).toHaveLength(1);
  },
);

test.each(["reads", "everything"] as const)(
  "if the store refuses %s for a moment when the answer comes, the client gets the answer and no notice",
  async (refused) => {
    const scene = await waiting(refused);
    const { world, sent, model, isRefusing, mend } = scene;
    model.answer(ANSWER);
    await timeUntil(world, until(isRefusing));
    await world.advance(1_000);
    mend();
    expect(await timeUntil(world, sent)).toMatchObject({ status: "ok", reply: ANSWER });
    expect(await settled(scene, "answered")).toEqual([]);
  },
);

test("if the store refuses to record that a client got its answer, the record is made later, and the client gets no notice", async () => {
  const scene = await waiting("writes");
  const { world, sent, model, mend } = scene;
  model.answer(ANSWER);
  expect(await timeUntil(world, sent)).toMatchObject({ status: "ok", reply: ANSWER });
  await world.advance(60_000);
  mend();
  expect(await settled(scene, "answered")).toEqual([]);
});

test("if the store refuses reads after a send, and an operator gets an error, the answer comes to the sender's session", async () => {
  const world = fakeWorld();
  const model = heldModel();
  const dir = temporaryFolder();
  const disk = await openStore(dir, world);
  const { store, mend } = refusing(disk, "reads", "open");
  const house = await openHouse({ play: model.play, world, dir, disk: store });
  const sent = sendAs(house, "agent:research:main", "agent:main:main", "work", 600);
  expect(await timeUntil(world, sent), "there is no result of the tool").toBeUndefined();
  mend();
  await timeUntil(world, model.started);
  model.answer(ANSWER);
  const replies = () => runsOf(disk.db, "agent:research:main");
  await timeUntil(
    world,
    until(async () => (await replies()).length > 0),
  );
  expect((await replies())[0]?.input.text).toContain(ANSWER);
});
