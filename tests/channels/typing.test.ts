// The typing indicator: it is shown in the chat of the message as long as its run executes.

import { expect, test } from "vitest";
import { followTyping } from "../../src/channels/typing.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { openFlowApp, type Play } from "../kit/engine/flow-app.ts";
import { type FakeChannel, fakeChannel, openAccount, said } from "../kit/platforms/fake-channel.ts";
import { fakeWorld } from "../kit/world.ts";

const MAIN = "agent:main:main";

async function open(play: Play, chat: FakeChannel = fakeChannel()) {
  const world = fakeWorld();
  const app = await openFlowApp({
    plays: { [MAIN]: play },
    chat,
    world,
    choices: { channels: [openAccount()] },
  });
  const { engine } = app;
  const channels = new Map([[chat.id, chat]]);
  cleanup(followTyping({ bus: engine.bus, db: app.store.db, world, channels }));
  return { app, chat, world };
}

/** Returns a turn that ends when the test releases it. */
function held() {
  const gate = Promise.withResolvers<string>();
  return { play: () => gate.promise, end: () => gate.resolve("done") };
}

test("the typing indicator is sent every four seconds until the run has ended", async () => {
  const { play, end } = held();
  const { app, chat, world } = await open(play);
  await app.inbound.receive(said("hello"));
  await expect.poll(() => chat.typed.length).toBe(1);
  await world.advance(8_500);
  expect(chat.typed).toHaveLength(3);
  expect(chat.typed[0]).toMatchObject({ to: "7" });
  end();
  while (!(await app.isQuiet())) await world.advance(1);
  await world.advance(60_000);
  expect(chat.typed).toHaveLength(3);
});

test("TY1: a failure of the typing indicator has no other effect", async () => {
  const chat = fakeChannel();
  let tries = 0;
  chat.typing = async () => {
    tries += 1;
    throw new Error("no");
  };
  const { play, end } = held();
  const { app, world } = await open(play, chat);
  await app.inbound.receive(said("hello"));
  await expect.poll(() => tries).toBe(1);
  await world.advance(4_000);
  expect(tries).toBe(2);
  end();
  while (!(await app.isQuiet())) await world.advance(1);
  expect(chat.textsAt("7")).toEqual(["done"]);
});

test("TY2: while a call hangs, no other call is made; after a quarter of an hour the typing indicator ends", async () => {
  const chat = fakeChannel();
  let tries = 0;
  chat.typing = () => {
    tries += 1;
    return new Promise(() => {});
  };
  const { play, end } = held();
  const { app, world } = await open(play, chat);
  await app.inbound.receive(said("hello"));
  await expect.poll(() => tries).toBe(1);
  await world.advance(60_000);
  expect(tries).toBe(1);
  const patient = await open(play);
  await patient.app.inbound.receive(said("hello"));
  await expect.poll(() => patient.chat.typed.length).toBe(1);
  await patient.world.advance(15 * 60_000);
  const { length } = patient.chat.typed;
  await patient.world.advance(60_000);
  expect(patient.chat.typed).toHaveLength(length);
  end();
  for (const one of [{ app, world }, patient]) while (!(await one.app.isQuiet())) await one.world.advance(1);
});

test("a turn without a person shows no typing indicator", async () => {
  const { app, chat, world } = await open(() => "words");
  await app.tell(MAIN, "from a client");
  while (!(await app.isQuiet())) await world.advance(1);
  expect(chat.typed).toEqual([]);
});
