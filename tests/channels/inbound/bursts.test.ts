// Messages that one person sends within a short time become one run. If a message is edited, the last version
// counts.

import { describe, expect, test } from "vitest";
import { pruneInbound } from "../../../src/store/queries/channels/inbound.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { said, saidInGroup } from "../../kit/platforms/fake-channel.ts";
import { fakeWorld } from "../../kit/world.ts";
import { DEBOUNCE_MS, GROUP, goOn, MAIN, open, rows, slow, workOff } from "./kit.ts";

describe("bursts", () => {
  test("I3: messages within the debounce time become one run, in order", async () => {
    const world = fakeWorld();
    const { app, chat, receive } = await open({ world }, slow());
    await receive(said("one"));
    await goOn(app, world, 500);
    await receive(said("two"));
    await goOn(app, world, 900);
    await receive(said("three"));
    await goOn(app, world, 900);
    expect(await app.runs(MAIN)).toEqual([]);
    await workOff(app, world, 100);
    expect((await app.texts(MAIN))[0]).toBe("user: one\n\ntwo\n\nthree");
    expect(chat.shown).toHaveLength(1);
    const [run] = await app.runs(MAIN);
    expect((await rows(app)).map(({ state, run_id }) => [state, run_id])).toEqual(
      Array.from({ length: 3 }, () => ["done", run?.runId]),
    );
  });

  test("a burst ends after five debounce times, even while messages still arrive", async () => {
    const world = fakeWorld();
    const { app, receive } = await open({ world }, slow());
    for (let at = 0; at < 8; at += 1) {
      await receive(said(`${at}`));
      await goOn(app, world, 800);
    }
    await workOff(app, world, DEBOUNCE_MS);
    expect((await app.texts(MAIN)).filter((text) => text.startsWith("user"))).toEqual([
      "user: 0\n\n1\n\n2\n\n3\n\n4\n\n5\n\n6",
      "user: 7",
    ]);
  });

  test("messages of different people, chats and threads are not joined", async () => {
    const world = fakeWorld();
    const { app, receive } = await open({ world }, slow());
    await receive(saidInGroup("a"));
    await receive(saidInGroup("b", { from: "8", name: "Bob" }));
    await receive(saidInGroup("c", { chat: { thread: { kind: "topic", id: "1" } } }));
    await receive(said("d"));
    await workOff(app, world, DEBOUNCE_MS);
    const runs = await app.runs(GROUP);
    expect(runs.map(({ input }) => [input.senderName, input.text])).toEqual([
      ["Ada", "a"],
      ["Bob", "b"],
    ]);
    expect(await app.runs(`${GROUP}:topic:1`)).toHaveLength(1);
    expect(await app.runs(MAIN)).toHaveLength(1);
  });

  test("too many messages in a burst become several runs, and none is lost", async () => {
    const world = fakeWorld();
    const { app, receive } = await open({ world }, slow());
    for (let at = 0; at < 120; at += 1) await receive(said(`<${at}>`));
    await workOff(app, world, 6 * DEBOUNCE_MS);
    const told = (await app.texts(MAIN)).filter((text) => text.startsWith("user")).join("");
    for (let at = 0; at < 120; at += 1) expect(told).toContain(`<${at}>`);
    expect((await app.runs(MAIN)).length).toBe(3);
  });

  test("long messages are not joined: each is a separate run, in order", async () => {
    const world = fakeWorld();
    const { app, receive } = await open({ world }, slow());
    for (const letter of ["a", "b", "c"]) await receive(said(letter.repeat(200_000)));
    await workOff(app, world, DEBOUNCE_MS);
    const texts = (await app.runs(MAIN)).map(({ input }) => input.text);
    expect(texts.map((text) => [text[0], text.length])).toEqual([
      ["a", 200_000],
      ["b", 200_000],
      ["c", 200_000],
    ]);
  });

  test("I2: messages that wait in a burst become a run after a restart", async () => {
    const dir = temporaryFolder();
    const world = fakeWorld();
    const first = await open({ dir, world }, slow());
    await first.receive(said("do not forget me"));
    await first.app.stop(0);
    const second = await open({ dir, world }, slow());
    await workOff(second.app, world, DEBOUNCE_MS);
    expect((await second.app.texts(MAIN))[0]).toBe("user: do not forget me");
  });
});

describe("edits", () => {
  test("an edit of a message that waits in a burst replaces it", async () => {
    const world = fakeWorld();
    const { app, receive } = await open({ world }, slow());
    const message = said("meet at 5");
    await receive(message);
    await receive(said("and bring cake"));
    await receive({ ...message, text: "meet at 6", edit: "1" });
    await workOff(app, world, DEBOUNCE_MS);
    expect((await app.texts(MAIN))[0]).toBe("user: meet at 6\n\nand bring cake");
  });

  test("an edit of a message that became a run is a new message marked as an edit; an edit without a change is ignored", async () => {
    const { app, receive } = await open();
    const message = said("meet at 5");
    await receive(message);
    await receive({ ...message, text: "Meet  at 5", edit: "1" });
    await receive({ ...message, text: "meet at 6", edit: "2" });
    await receive({ ...message, text: "meet at 6", edit: "2" });
    await receive({ ...message, text: "MEET AT 6", edit: "3" });
    await app.quiet();
    expect((await app.runs(MAIN)).map(({ input }) => input.text)).toEqual([
      "meet at 5",
      "[This changes an earlier message, which now reads:]\nmeet at 6",
    ]);
  });

  test("BU5: an edit of a later picture of an album is an edit, and an edit without a change is ignored", async () => {
    const { app, receive } = await open();
    const album = {
      ...said("our trip\nthe lake"),
      parts: [
        { messageId: "a1", text: "our trip" },
        { messageId: "a2", text: "the lake" },
        { messageId: "a3", text: "" },
      ],
      messageId: "a1",
    };
    await receive(album);
    const { parts: _, ...picture } = album;
    await receive({ ...picture, text: "our trip", edit: "1" });
    await receive({ ...picture, messageId: "a2", text: "the lake", edit: "2" });
    await receive({ ...picture, messageId: "a2", text: "the sea", edit: "3" });
    await receive({ ...picture, messageId: "a3", text: "the hotel", edit: "4" });
    // If the platform sends a picture alone again, it is recognised.
    await receive({ ...picture, messageId: "a2", text: "the lake" });
    await app.quiet();
    const changes = "[This changes an earlier message, which now reads:]";
    expect((await app.runs(MAIN)).map(({ input }) => input.text)).toEqual([
      "our trip\nthe lake",
      `${changes}\nthe sea`,
      `${changes}\nthe hotel`,
    ]);
  });

  test("an edit of an unknown message is treated as a message; if the original arrives later, it is ignored", async () => {
    const { app, receive } = await open();
    const message = saidInGroup("@bot look", { mentioned: true, edit: "1" });
    await receive(message);
    const { edit: _, ...original } = message;
    await receive({ ...original, text: "look" });
    await app.quiet();
    expect((await app.runs(GROUP)).map(({ input }) => input.text)).toEqual(["@bot look"]);
  });
});

test("old stored messages are deleted, except those that still wait in a burst", async () => {
  const world = fakeWorld();
  const { app, receive } = await open({ world }, slow());
  await receive(said("a"));
  await workOff(app, world, DEBOUNCE_MS);
  await receive(said("b"));
  await app.engine.commit((unit) => pruneInbound(unit.tx, unit.now + 1));
  expect((await rows(app)).map(({ state }) => state)).toEqual(["pending"]);
});
