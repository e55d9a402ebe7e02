// Commands about the chat of a message: pairing and thread bindings.

import { expect, test } from "vitest";
import type { CommandRequest } from "../../../src/channels/commands/context.ts";
import { performCommand } from "../../../src/channels/commands.ts";
import { parseCommand } from "../../../src/core/rules/command.ts";
import { ok } from "../../../src/core/shapes/errors.ts";
import type { Route } from "../../../src/core/shapes/route.ts";
import { bindPlace } from "../../../src/flows/delivery/bindings.ts";
import { askToPair, listPairings } from "../../../src/flows/delivery/pairing.ts";
import { getBinding } from "../../../src/store/queries/channels/thread-bindings.ts";
import { openSpawnApp, type SpawnApp } from "../../kit/engine/spawn-app.ts";
import { settingsWith } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const PLACE: Route = { channel: "telegram", to: "-100", threadId: "5" };
const HOUR_MS = 3_600_000;

interface Stage extends SpawnApp {
  give(
    line: string,
    who?: Partial<Omit<CommandRequest, "sender">> & { id?: string; isOwner?: boolean },
  ): Promise<string>;
}

async function open(): Promise<Stage> {
  const settings = settingsWith();
  const app = await openSpawnApp({
    settings,
    play: async (turn) => {
      if (turn.input === "go") await turn.tool("sessions_spawn", { task: "dig", label: "digger" });
      return "done";
    },
  });
  const parts = { engine: app.engine, settings, checkModel: (name: string) => ok(name) };
  return {
    ...app,
    async give(line, { id = "7", isOwner = false, ...more } = {}) {
      const call = parseCommand(line, { isOurs: () => false });
      if (call === undefined) throw new Error(`${line} is no command`);
      const sender = { channel: "telegram", id, isOwner };
      const place = { chatType: "group", sessionKey: MAIN, route: PLACE, accountId: "default" } as const;
      const request = { ...call, sender, ...place, ...more };
      return (await app.engine.commit((unit) => performCommand(parts, unit, request))).text;
    },
  };
}

async function codeOf(app: SpawnApp): Promise<string> {
  const [asked] = await listPairings(app.store.db, app.engine.now());
  return asked?.code ?? "";
}

test("/pair approve admits the person with the code; only an owner may use it, and a wrong code reveals nothing", async () => {
  const app = await open();
  const who = { channel: "telegram", accountId: "default", peerId: "42", name: "Eve [x](y)" };
  const route = { channel: "telegram", to: "42", accountId: "default" };
  const settings = settingsWith();
  await app.engine.commit((unit) => askToPair({ settings }, unit, { ...who, route }));
  const asked = await codeOf(app);
  expect(await app.give(`/pair approve ${asked}`)).toBe("/pair is for owners only.");
  expect(await app.give("/pair approve", { isOwner: true })).toContain("takes `approve <code>`");
  expect(await app.give("/pair approve WRONGONE", { isOwner: true })).toContain("no open pairing");
  expect(await listPairings(app.store.db, app.engine.now())).toMatchObject([{ state: "pending" }]);
  expect(await app.give(`/pair approve ${asked.toLowerCase()}`, { isOwner: true })).toBe(
    "`telegram:42` (Eve \\[x\\](y)) can write from now on.",
  );
  expect(await listPairings(app.store.db, app.engine.now())).toMatchObject([{ state: "approved" }]);
  expect(await app.give(`/pair approve ${asked}`, { isOwner: true })).toContain("no open pairing");
});

/** Spawns a sub-agent for the person `telegram:7`, and binds it to the chat. */
async function bound(app: Stage): Promise<string> {
  const input = { text: "go", sender: "telegram:7" };
  const accepted = await app.engine.accept({ sessionKey: MAIN, input });
  expect(accepted.ok).toBe(true);
  await app.quiet();
  const [child] = await app.children(MAIN);
  const sessionKey = child?.key ?? "";
  const settings = settingsWith();
  const place = { route: PLACE, kind: "created", sessionKey } as const;
  await app.engine.commit((unit) => bindPlace({ settings }, unit, place));
  return sessionKey;
}

test("/session shows, changes and removes the binding of a chat", async () => {
  const app = await open();
  expect(await app.give("/session")).toBe("This chat is not bound to a session.");
  const sessionKey = await bound(app);
  const there = { sessionKey };
  expect(await app.give("/session", there)).toContain(`bound to \`${sessionKey}\``);
  await app.give("/session idle 2.5", there);
  expect(await app.give("/session max-age 48", there)).toBe(
    "The binding ends after 2.5 h without a message, or at the age of 48 h.",
  );
  expect(await getBinding(app.store.db, PLACE)).toMatchObject({
    idleMs: 2.5 * HOUR_MS,
    maxAgeMs: 48 * HOUR_MS,
  });
  await app.give("/session idle OFF", there);
  expect(await getBinding(app.store.db, PLACE)).toMatchObject({ idleMs: 0, maxAgeMs: 48 * HOUR_MS });
  for (const args of [
    "idle",
    "idle -1",
    "idle 1e9",
    "idle 0x10",
    "idle 1 2",
    "max-age soon",
    "unbind now",
    "x",
  ]) {
    expect(await app.give(`/session ${args}`, there)).toContain("/session takes `unbind`");
  }
  expect(await app.give("/session idle 999999", there)).toContain("hours");
  expect(await getBinding(app.store.db, PLACE)).toMatchObject({ idleMs: 0, maxAgeMs: 48 * HOUR_MS });
  expect(await app.give("/session unbind", there)).toContain("no longer bound");
  expect(await getBinding(app.store.db, PLACE)).toBeUndefined();
});

test("CP1: in a group only an owner and the person who started the sub-agent can change its binding", async () => {
  const app = await open();
  const there = { sessionKey: await bound(app) };
  for (const line of ["/session unbind", "/session idle 1", "/session max-age off"]) {
    expect(await app.give(line, { ...there, id: "8" })).toContain(
      "Only the person who started this sub-agent",
    );
  }
  expect(await getBinding(app.store.db, PLACE)).toBeDefined();
  expect(await app.give("/session idle 1", { ...there, id: "7" })).toContain("after 1 h");
  expect(await app.give("/session unbind", { ...there, id: "1", isOwner: true })).toContain(
    "no longer bound",
  );
});
