// The note of `sessions_spawn` says correctly how the result will be delivered, for each setting.

import { expect, test } from "vitest";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { resetSession } from "../../../src/flows/session/lifecycle.ts";
import { jobOfChild } from "../../../src/store/queries/chains/flows.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { toolsFor } from "../../../src/tools/catalog.ts";
import { endOf, temporaryFolder } from "../../kit/engine/engine.ts";
import { openSpawnApp, type SpawnPlay } from "../../kit/engine/spawn-app.ts";
import { MAIN_CHAIN, settingsWith } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const NOT_RUN = "it starts no turn of yours";
const RUN = "its result starts a new turn of yours";

function settings(announce: "post" | "wake", more: Partial<Settings["subagents"]> = {}): Settings {
  const base = settingsWith();
  return { ...base, subagents: { ...base.subagents, announce, ...more } };
}

const spawns =
  (args: Record<string, unknown>): SpawnPlay =>
  async (turn) => {
    if (turn.step === "announce") return "Result: done";
    if (turn.session.key !== MAIN) return "did it";
    if (turn.handle.run.input.provenance !== undefined) return "woken";
    return JSON.stringify(await turn.tool("sessions_spawn", { task: "work", ...args }));
  };

test.each([
  ["post", {}, "post"],
  ["wake", {}, "wake"],
  ["post", { announce: "wake" }, "wake"],
  ["wake", { announce: "post" }, "post"],
] as const)(
  "configured %s and called with %o: the note describes how the result is really delivered (%s)",
  async (configured, args, way) => {
    const app = await openSpawnApp({ settings: settings(configured), play: spawns(args) });
    await app.route(MAIN);
    const run = await app.tell(MAIN, "go", undefined, { channel: "webchat", to: MAIN });
    const { note } = JSON.parse((await endOf(app.engine, run.runId)).reply ?? "{}");
    await app.quiet();
    const kinds = (await app.runs(MAIN)).map((one) => one.kind);
    const posted = app.sent.filter(({ text }) => text.startsWith("Status: ok"));
    expect(note).toContain(way === "post" ? NOT_RUN : RUN);
    expect(note.includes("posted to the people of this conversation")).toBe(way === "post");
    expect(kinds).toEqual(way === "post" ? ["turn", "append"] : ["turn", "turn"]);
    expect(posted).toHaveLength(way === "post" ? 1 : 0);
  },
);

test.each([
  // The kinds of main's runs, the number of texts to people, and whether the child has an announce step.
  ["parent", ["turn", "append"], 0, true, "appended to your transcript"],
  ["channel", ["turn"], 1, true, "posted to people; it does not reach you"],
  ["none", ["turn"], 0, false, "only subagents returns it"],
] as const)(
  "announce %s: main has the runs %j, and people get %i texts",
  async (announce, kinds, posted, asks, words) => {
    const app = await openSpawnApp({ settings: settings("wake"), play: spawns({ announce }) });
    await app.route(MAIN);
    const run = await app.tell(MAIN, "go", undefined, { channel: "webchat", to: MAIN });
    const { note } = JSON.parse((await endOf(app.engine, run.runId)).reply ?? "{}");
    await app.quiet();
    expect(note).toContain(words);
    expect((await app.runs(MAIN)).map(({ kind }) => kind)).toEqual(kinds);
    expect(app.sent.filter(({ text }) => text.startsWith("Status: ok"))).toHaveLength(posted);
    const [child] = await app.children(MAIN);
    const steps = (await app.runs(child?.key ?? "")).map(({ flow }) => flow?.step);
    expect(steps).toEqual(asks ? ["task", "announce"] : ["task"]);
    const job = await jobOfChild(app.store.db, child?.key ?? "");
    expect(job).toMatchObject({ open: false, endReason: asks ? "announced" : "silent" });
    expect(job?.outcome).toMatchObject({ status: "ok", result: asks ? "done" : "did it" });
  },
);

test("announce channel without a channel is refused, and a result that only main was to get is kept if main is reset", async () => {
  const alone = await openSpawnApp({ settings: settings("post"), play: spawns({ announce: "channel" }) });
  const { error } = JSON.parse(
    (await endOf(alone.engine, (await alone.tell(MAIN, "go")).runId)).reply ?? "{}",
  );
  expect(error).toBe('announce: "channel" needs a channel, and this session has none');
  expect(await alone.children(MAIN)).toEqual([]);

  const release = Promise.withResolvers<void>();
  const play: SpawnPlay = async (turn) => {
    if (turn.step === "task") await release.promise;
    return spawns({ announce: "parent" })(turn);
  };
  const app = await openSpawnApp({ settings: settings("post"), play });
  await app.route(MAIN);
  await endOf(app.engine, (await app.tell(MAIN, "go")).runId);
  const parts = { engine: app.engine, settings: settings("post"), dropTranscript: async () => {} };
  const main = await app.session(MAIN);
  if (main !== undefined) await resetSession(parts, main);
  release.resolve();
  await app.quiet();
  expect(app.sent).toEqual([]);
  const rows = await app.store.db.selectFrom("deliveries").select(["state", "code", "text"]).execute();
  expect(rows).toMatchObject([{ state: "failed", code: "requester_reset" }]);
  expect(rows[0]?.text).toContain("Result: done");
});

test("a job keeps its announce mode if the setting changes before a restart", async () => {
  const dir = temporaryFolder();
  const first = await openSpawnApp({
    settings: settings("post"),
    play: spawns({ announce: "wake" }),
    dir,
    dies: true,
  });
  await endOf(first.engine, (await first.tell(MAIN, "go")).runId);
  await first.quiet();
  await first.stop(0);
  const second = await openSpawnApp({ settings: settings("post"), play: spawns({}), dir });
  const [child] = await second.children(MAIN);
  expect((await getSession(second.store.db, child?.key ?? ""))?.spawn?.announce).toBe("wake");
});

test("an invalid announce mode is refused with the list of valid ones, and no child is created", async () => {
  const app = await openSpawnApp({ settings: settings("post"), play: spawns({ announce: "shout" }) });
  const run = await app.tell(MAIN, "go");
  const { error } = JSON.parse((await endOf(app.engine, run.runId)).reply ?? "{}");
  expect(error).toContain("announce");
  expect(error).toContain("post, wake");
  expect(await app.children(MAIN)).toEqual([]);
});

test("a sub-agent's context says who gets its result, and that results of its own children wake it", async () => {
  const contexts: string[] = [];
  const app = await openSpawnApp({
    settings: settings("post", { maxSpawnDepth: 2 }),
    play: async (turn) => {
      if (turn.step === "task") contexts.push(turn.handle.run.input.context ?? "");
      if (turn.session.spawnDepth !== 1 || turn.input !== "work") return spawns({})(turn);
      return String((await turn.tool("sessions_spawn", { task: "leaf" })).note);
    },
  });
  await app.tell(MAIN, "go");
  await app.quiet();
  expect(contexts[0]).toContain("to the people of that session, and in its transcript");
  expect(contexts[1]).toContain("it starts a turn of the agent of that session");
  const [child] = await app.children(MAIN);
  expect((await app.texts(child?.key ?? "")).join("\n")).toContain(RUN);
});

test.each([
  ["post", false, "posted to the people of this conversation"],
  ["wake", false, "its result starts a new turn of yours"],
  ["post", true, "comes to your inbox"],
  ["wake", true, "comes to your inbox"],
] as const)(
  `with announce %s (external client: %s), the note about waking the requester contains "%s"`,
  (announce, external, words) => {
    const tools = toolsFor({ settings: settings(announce), chain: MAIN_CHAIN, external });
    const described = tools.find(({ spec }) => spec.name === "sessions_spawn")?.spec.description ?? "";
    expect(described).toContain(words);
    expect(described).toContain("subagents with action wait");
  },
);
