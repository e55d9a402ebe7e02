// Commands in inbound messages run immediately, in order and only once, with every send policy.

import { describe, expect, test } from "vitest";
import { openInbound } from "../../../src/channels/inbound.ts";
import { insertDelivery } from "../../../src/store/queries/channels/deliveries.ts";
import { said, saidInGroup } from "../../kit/platforms/fake-channel.ts";
import { fakeWorld } from "../../kit/world.ts";
import { MAIN, open, rows, slow, workOff } from "./kit.ts";

describe("commands", () => {
  test("commands run immediately and once, are answered in their chat, and start no run", async () => {
    const { app, chat, receive } = await open();
    const message = said("/whoami");
    await receive(message);
    await receive(message);
    await app.quiet();
    expect(chat.textsAt("7")).toHaveLength(1);
    expect(chat.textsAt("7")[0]).toContain("telegram:7");
    expect(await app.runs(MAIN)).toEqual([]);
  });

  test("O2: commands run even if the chat's outbox is full, and the log says that the answer was dropped", async () => {
    const world = fakeWorld();
    const { app, receive } = await open({ world });
    const route = said("/whoami").replyTo;
    const row = { sessionKey: MAIN, kind: "send", route, text: "waits", state: "pending" } as const;
    await app.engine.commit(async (unit) => {
      for (let count = 1; count <= 200; count += 1) {
        await insertDelivery(unit.tx, { ...row, id: `waits-${count}`, createdAt: unit.now });
      }
    });
    await receive(said("/whoami"));
    expect((await rows(app)).map(({ state }) => state)).toEqual(["done"]);
    expect(world.logged.filter(({ level }) => level === "warn")).toMatchObject([
      { fields: { account: "telegram:default", to: "7", command: "whoami" }, text: /answer is left out/ },
    ]);
  });

  test("KE3: earlier messages become a run before a command runs", async () => {
    const world = fakeWorld();
    const { app, receive } = await open({ world }, slow());
    await receive(said("remember this"));
    await receive(said("/status"));
    expect((await rows(app)).map(({ state }) => state)).toEqual(["done", "done"]);
    await workOff(app, world, 0);
    expect((await app.runs(MAIN)).map(({ input }) => input.text)).toEqual(["remember this"]);
  });

  test("IN4: a command that throws is reported once, and the next command runs", async () => {
    const world = fakeWorld({ clock: "real" });
    const { app, chat } = await open({ world });
    const { engine, settings } = app;
    const checkModel = () => {
      throw new Error("a mistake");
    };
    const { receive } = openInbound({ engine, settings, world, checkModel });
    const broken = said("/model some/model");
    await receive(broken);
    await receive(broken);
    await receive(said("/whoami"));
    await app.quiet();
    expect(chat.textsAt("7")).toEqual([
      "This command failed. See the gateway's log.",
      expect.stringContaining("telegram:7"),
    ]);
    expect(world.logged.filter(({ level }) => level === "error")).toHaveLength(1);
  });

  test("the send policy applies to texts of the agent, but not to answers of commands", async () => {
    const policy = { rules: [], default: "deny" } as const;
    const base = await open();
    const { app, chat, receive } = await open({
      choices: { session: { ...base.app.settings.session, sendPolicy: policy } },
    });
    await receive(said("/whoami"));
    await receive(said("hello"));
    await app.quiet();
    expect(chat.textsAt("7")).toHaveLength(1);
    const skipped = await app.store.db.selectFrom("deliveries").select(["state", "text"]).execute();
    expect(skipped.find(({ state }) => state === "skipped")?.text).toBe("echo hello");
  });

  test("in a group an owner's command needs no mention of the bot, but commands of other people do", async () => {
    const { app, chat, receive } = await open({ choices: { owners: ["telegram:7"] } });
    await receive(saidInGroup("/whoami", { mentioned: false }));
    await receive(saidInGroup("/whoami", { mentioned: false, from: "8" }));
    await receive(saidInGroup("/whoami", { mentioned: false, from: "8", nativeCommand: true }));
    await app.quiet();
    expect(chat.textsAt("-100")).toHaveLength(2);
  });
});
