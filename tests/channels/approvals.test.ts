// Owners answer permission requests on every chat platform, with commands and with buttons.

import { expect, test } from "vitest";
import { until } from "../kit/until.ts";
import { COMMAND, MAIN, open, openAsking, type Place, type Stage, toldAda } from "./approvals-kit.ts";

interface FeaturePlace {
  openPlace(): Promise<Place>;
  readonly hasButtons?: true;
}
/** The chat platforms, by the files that open them. */
const PLACES = Object.entries(import.meta.glob<FeaturePlace>("../features/*/place.ts", { eager: true })).map(
  ([file, { openPlace, hasButtons }]) => [file.split("/").at(-2) ?? "", openPlace, hasButtons] as const,
);

/** Lets Bob try every command about the request. He is refused, and does not see the title. */
async function bobIsRefused(stage: Stage, id: string): Promise<void> {
  const names = ["approvals", "allow", "deny"];
  for (const [at, name] of names.entries()) {
    await stage.says("bob", name === "approvals" ? "/approvals" : `/${name} ${id}`);
    await expect.poll(() => stage.seenBy("bob")).toHaveLength(at + 1);
  }
  expect(stage.seenBy("bob")).toEqual(names.map((name) => `/${name} is for owners only.`));
  expect(stage.hasRun()).toBe(false);
}

test.each(PLACES)(
  "on %s, an owner allows a command in the chat where the agent asks, and nobody else can",
  async (_, place) => {
    const stage = await open(await place());
    await stage.says("ada", `run: ${COMMAND}`);
    const id = await toldAda(stage, /\/allow ([0-9a-f]{8})/);
    expect(stage.seenBy("ada")[0]).toContain(COMMAND);
    await bobIsRefused(stage, id);
    await stage.says("ada", `/allow ${id}`);
    await expect.poll(stage.hasRun).toBe(true);
    await expect.poll(() => stage.seenBy("ada")).toHaveLength(3);
    expect(stage.seenBy("ada")).toContain(`Allowed for main:\n┃ ${COMMAND}`);
    await expect.poll(stage.runs).toMatchObject([{ state: "ok" }]);
  },
);

test.each(PLACES)(
  "on %s, an owner finds and denies a command of work that began elsewhere, and nobody else can",
  async (_, place) => {
    const stage = await open(await place());
    const input = { text: `run: ${COMMAND}` };
    expect(await stage.app.engine.accept({ sessionKey: MAIN, input })).toMatchObject({ ok: true });
    await until(async () => (await stage.runs())[0]?.state === "waiting");
    await stage.says("ada", "/approvals");
    const id = await toldAda(stage, /([0-9a-f]{8}) main:\n┃ echo done/);
    await bobIsRefused(stage, id);
    await stage.says("ada", `/deny ${id}`);
    await expect.poll(() => stage.seenBy("ada")[1]).toBe(`Denied for main:\n┃ ${COMMAND}`);
    await expect.poll(async () => (await stage.runs())[0]?.state).toBe("ok");
    expect((await stage.runs())[0]?.reply).toContain("denied by the owner");
    expect(stage.hasRun()).toBe(false);
  },
);

const WITH_BUTTONS = PLACES.filter(([, , hasButtons]) => hasButtons);

test.each(WITH_BUTTONS)(
  "on %s, an owner's press allows a command once, however often it is repeated, and nobody else's does",
  async (_, place) => {
    const stage = await openAsking(place);
    expect(stage.labels()).toEqual(["Allow once", "Deny", "In this session…", "Always…"]);
    const allow = stage.commandOf("Allow once");
    const before = stage.now().text;
    expect(await stage.press("bob", allow)).toBe("/allow is for owners only.");
    expect(await stage.press("ada", allow, true)).toBe("This button has just appeared. Press it again.");
    expect(stage.now().text).toBe(before);
    expect(stage.hasRun()).toBe(false);
    expect(await Promise.all([stage.press("ada", allow), stage.press("ada", allow)])).toEqual([
      "",
      expect.stringContaining("There is no open permission request"),
    ]);
    await expect.poll(stage.hasRun, { timeout: 10_000 }).toBe(true);
    await expect.poll(() => stage.now().text).toBe(`${before}\n\nAllowed for main:\n┃ ${COMMAND}`);
    expect(stage.labels()).toEqual([]);
    expect(await stage.press("ada", allow)).toMatch(/no open permission request|no longer in use/);
    expect(await stage.rules()).toEqual([]);
  },
);

test.each(WITH_BUTTONS)(
  "on %s, a press of Always is confirmed by a second one, which can be undone by a third",
  async (_, place) => {
    const stage = await openAsking(place);
    expect(await stage.press("ada", stage.commandOf("Always…"))).toBe("");
    await expect.poll(stage.labels, { timeout: 10_000 }).toEqual(["Allow once", "Yes, always", "Deny"]);
    expect(stage.now().text).toMatch(
      /From now on agent main runs exactly this command without asking, in all its sessions, in the folder .*\n┃ echo done/,
    );
    expect(await stage.rules()).toEqual([]);
    expect(stage.hasRun()).toBe(false);
    expect(await stage.press("ada", stage.commandOf("Yes, always"))).toBe("");
    await expect.poll(stage.labels, { timeout: 10_000 }).toEqual(["Undo"]);
    expect(stage.now().text).toContain(`Allowed always for main:\n┃ ${COMMAND}`);
    await expect.poll(stage.hasRun, { timeout: 10_000 }).toBe(true);
    expect(await stage.rules()).toMatchObject([{ scope: "always", agentId: "main" }]);
    const undo = stage.commandOf("Undo");
    expect(await stage.press("bob", undo)).toBe("/deny is for owners only.");
    expect(await stage.press("ada", undo)).toBe("");
    await expect.poll(() => stage.now().text, { timeout: 10_000 }).toMatch(/Undone for main\..*$/);
    expect(stage.labels()).toEqual([]);
    expect(await stage.rules()).toEqual([]);
  },
);
