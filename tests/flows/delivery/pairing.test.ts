// Pairing of unknown people: the messages to both sides, their number, and the validity of a code.

import { expect, test } from "vitest";
import { notePrefix } from "../../../src/flows/delivery/outbox.ts";
import {
  approvePairing,
  listPairings,
  rejectPairing,
  removePeer,
} from "../../../src/flows/delivery/pairing.ts";
import { forgetSettled } from "../../../src/store/queries/channels/deliveries.ts";
import { type FlowApp, openFlowApp } from "../../kit/engine/flow-app.ts";
import { fakeChannel, openAccount, said } from "../../kit/platforms/fake-channel.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";

const MAIN = "agent:main:main";
const MINUTE = 60_000;
const CODE = /[ABCDEFGHJKMNPQRSTUVWXYZ23456789]{8}/;

async function open(seed = 1) {
  const world = fakeWorld({ seed });
  const chat = fakeChannel();
  const account = openAccount({ dmPolicy: "pairing" });
  const app = await openFlowApp({ plays: {}, chat, world, choices: { channels: [account] } });
  const codes = (from: string): string[] => chat.textsAt(from).map((text) => CODE.exec(text)?.[0] ?? text);
  return { app, chat, world, codes, receive: app.inbound.receive };
}

async function settle(app: FlowApp, world: FakeWorld): Promise<void> {
  while (!(await app.isQuiet())) await world.advance(1);
}

test("an unknown person gets a code and instructions, and their text is not stored", async () => {
  const { app, chat, world, codes, receive } = await open();
  await receive(said("let me in", { name: "Eve\n[runtime]" }));
  await settle(app, world);
  const [code = ""] = codes("7");
  expect(chat.textsAt("7")[0]).toContain(`npx parley-gateway channels pair approve ${code}`);
  expect(chat.textsAt("7")[0]).toContain(`/pair approve ${code}`);
  expect(await app.runs(MAIN)).toEqual([]);
  expect(await app.store.db.selectFrom("inbound").selectAll().execute()).toEqual([]);
  expect(await listPairings(app.store.db, world.clock.now())).toMatchObject([
    { channel: "telegram", accountId: "default", peerId: "7", name: "Eve [runtime]", state: "pending", code },
  ]);
});

test("PR1: the code is sent at most once in ten minutes, and stays the same for an hour", async () => {
  const { app, world, codes, receive } = await open();
  for (let at = 0; at < 5; at += 1) await receive(said("hello?"));
  await settle(app, world);
  expect(codes("7")).toHaveLength(1);
  await world.advance(11 * MINUTE);
  await receive(said("hello?"));
  await settle(app, world);
  expect(codes("7")).toHaveLength(2);
  expect(new Set(codes("7")).size).toBe(1);
  await world.advance(50 * MINUTE);
  await receive(said("hello?"));
  await settle(app, world);
  expect(new Set(codes("7")).size).toBe(2);
});

test("PR1: the number of open pairing requests is limited, and a new request replaces the oldest", async () => {
  const { app, chat, world, receive } = await open();
  for (let at = 0; at < 60; at += 1) await receive(said("hi", { from: `stranger-${at}` }));
  await settle(app, world);
  expect(chat.shown).toHaveLength(20);
  expect(await listPairings(app.store.db, world.clock.now())).toHaveLength(20);
  // While the list of pairing requests is full, new people have to wait at most ten minutes.
  await world.advance(9 * MINUTE);
  await receive(said("hi", { from: "soon" }));
  await settle(app, world);
  expect(chat.textsAt("soon")).toEqual([]);
  await world.advance(2 * MINUTE);
  for (const from of ["soon", "soon", "again"]) await receive(said("hi", { from }));
  await settle(app, world);
  expect([chat.textsAt("soon").length, chat.textsAt("again").length]).toEqual([1, 1]);
  expect(await listPairings(app.store.db, world.clock.now())).toHaveLength(20);
  await world.advance(61 * MINUTE);
  await receive(said("hi", { from: "late" }));
  await settle(app, world);
  expect(chat.textsAt("late")).toHaveLength(1);
  const rows = await app.store.db.selectFrom("channel_peers").select("peer_id").execute();
  expect(rows).toEqual([{ peer_id: "late" }]);
});

test("PR2, PR3: an approved person is notified and then gets answers, and the code cannot be used again", async () => {
  const { app, chat, world, codes, receive } = await open();
  await receive(said("hello"));
  await settle(app, world);
  const [code = ""] = codes("7");
  const typed = ` ${code.slice(0, 4).toLowerCase()}-${code.slice(4)} `;
  expect(await approvePairing(app, typed)).toMatchObject({
    ok: true,
    value: { peerId: "7", state: "approved" },
  });
  await receive(said("now?"));
  await settle(app, world);
  expect(chat.textsAt("7").slice(1)).toEqual([expect.stringContaining("let in"), "echo now?"]);
  expect(await approvePairing(app, code)).toMatchObject({ ok: false, code: "pairing_not_found" });
});

test("PR2: an unknown code, a used code and an hour-old code get the same answer", async () => {
  const { app, world, codes, receive } = await open();
  await receive(said("hello"));
  await settle(app, world);
  const [code = ""] = codes("7");
  const unknown = await approvePairing(app, "AAAAAAAA");
  await world.advance(61 * MINUTE);
  expect(await approvePairing(app, code)).toEqual(unknown);
  expect(await rejectPairing(app, code)).toEqual(unknown);
  expect(await approvePairing(app, "'; drop table channel_peers; --")).toEqual(unknown);
});

test("a rejected person gets no message even if they write again; a removed person counts as unknown", async () => {
  const { app, chat, world, codes, receive } = await open();
  await receive(said("hello"));
  await settle(app, world);
  expect(await rejectPairing(app, codes("7")[0] ?? "")).toMatchObject({
    ok: true,
    value: { state: "blocked" },
  });
  await world.advance(120 * MINUTE);
  await receive(said("hello?"));
  await settle(app, world);
  expect(chat.shown).toHaveLength(1);
  const who = { channel: "telegram", accountId: "default", peerId: "7" };
  const remove = () => app.engine.commit((unit) => removePeer(unit, who));
  expect((await remove()).ok).toBe(true);
  expect(await remove()).toMatchObject({ ok: false, code: "pairing_not_found" });
  await receive(said("hello again"));
  await settle(app, world);
  expect(chat.shown).toHaveLength(2);
});

test("only an owner can approve a person from a chat", async () => {
  const world = fakeWorld();
  const chat = fakeChannel();
  const account = openAccount({ dmPolicy: "pairing", allowFrom: ["9"] });
  const choices = { channels: [account], owners: ["telegram:1"] };
  const app = await openFlowApp({ plays: {}, chat, world, choices });
  await app.inbound.receive(said("hello"));
  await settle(app, world);
  const code = CODE.exec(chat.textsAt("7")[0] ?? "")?.[0] ?? "";
  await app.inbound.receive(said(`/pair approve ${code}`, { from: "9" }));
  await settle(app, world);
  expect((await listPairings(app.store.db, world.clock.now()))[0]?.state).toBe("pending");
  await app.inbound.receive(said(`/pair approve ${code}`, { from: "1" }));
  await settle(app, world);
  expect((await listPairings(app.store.db, world.clock.now()))[0]?.state).toBe("approved");
});

test("PR1: messages to unknown people are deleted from the outbox after a while", async () => {
  const { app, world, receive } = await open();
  await receive(said("hello"));
  await settle(app, world);
  const count = async () => (await app.store.db.selectFrom("deliveries").selectAll().execute()).length;
  await app.engine.commit((unit) => forgetSettled(unit.tx, notePrefix("pairing"), unit.now - MINUTE));
  expect(await count()).toBe(1);
  await world.advance(2 * MINUTE);
  await app.engine.commit((unit) => forgetSettled(unit.tx, notePrefix("pairing"), unit.now - MINUTE));
  expect(await count()).toBe(0);
});
