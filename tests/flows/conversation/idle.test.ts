// `notify: "idle"`: one notice when the recipient has finished all it has, also over crashes (idle.ts).

import { expect, test } from "vitest";
import type { Unit } from "../../../src/engine/unit.ts";
import { sessionMayBeIdle } from "../../../src/flows/conversation/idle.ts";
import { deleteSession, resetSession } from "../../../src/flows/session/lifecycle.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { type CrashPoint, crashAtEach, diesAtWork, temporaryFolder } from "../../kit/engine/engine.ts";
import { type FlowApp, openFlowApp, type Play } from "../../kit/engine/flow-app.ts";
import { noteQueries, runUndone } from "../../kit/store/noted-queries.ts";
import { until } from "../../kit/until.ts";
import { MAIN, RESEARCH } from "./asking.ts";

const IDLE = "that session has finished all its work";

/** Main asks for a notice, and answers the notice. */
const watches: Play = async (actor) =>
  actor.input === "go"
    ? JSON.stringify(await actor.send(RESEARCH, "work", 30, "call", { notify: "idle" }))
    : "I know";

const notices = async (app: FlowApp) =>
  (await app.runs(MAIN)).filter(({ input }) => input.provenance?.kind === "notice");

/** Research works until `release` is called. */
function heldResearch() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const play: Play = async ({ handle }) => {
    await Promise.race([promise, new Promise((stop) => handle.signal.addEventListener("abort", stop))]);
    return "done";
  };
  return { play, release: resolve };
}

test("the sender does not wait, and gets one turn when the last run of the recipient has ended", async () => {
  const held = heldResearch();
  const app = await openFlowApp({ plays: { [MAIN]: watches, [RESEARCH]: held.play } });
  await app.route(RESEARCH);
  await app.tell(MAIN, "go");
  await until(async () => (await app.runs(RESEARCH)).length === 1);
  await until(async () => (await app.runs(MAIN))[0]?.state === "ok");
  await app.tell(RESEARCH, "and this");
  expect((await app.texts(MAIN)).at(-1)).toContain('"status":"accepted"');
  held.release();
  await app.quiet();
  const [research, another] = await app.runs(RESEARCH);
  const told = await notices(app);
  expect(told).toMatchObject([{ kind: "turn", state: "ok" }]);
  expect(told[0]?.input.text).toContain(`(run ${research?.runId}): ${IDLE}. The run ended with "ok"`);
  expect(told[0]?.acceptedAt).toBeGreaterThanOrEqual(another?.endedAt ?? Number.NaN);
  // The reply itself goes to nobody.
  expect((await app.texts(MAIN)).filter((text) => text.includes("done"))).toEqual([]);
  expect(app.sent).toEqual([]);
});

test("the end of a run reads no texts of ordinary messages to its session", async () => {
  const held = heldResearch();
  const app = await openFlowApp({ plays: { [RESEARCH]: held.play } });
  for (const text of ["a", "b"]) await app.send(MAIN, RESEARCH, text, 0);
  await until(async () => (await app.runs(RESEARCH))[0]?.state === "running");
  const queries = await runUndone(app.store, (tx) =>
    noteQueries(tx, async (noted) => {
      const unit = { tx: noted } as Unit;
      await sessionMayBeIdle({ acceptor: app.engine, settings: app.settings, unit }, RESEARCH);
    }),
  );
  expect(queries.map(({ sql }) => sql).join()).not.toMatch(/request_text|input_json/);
  held.release();
  await app.quiet();
});

test("two sessions that wait for each other to be idle both get their notice", async () => {
  const both =
    (other: string): Play =>
    async (actor) => {
      if (actor.input === "go") await actor.send(other, "work", 0, "call", { notify: "idle" });
      return "done";
    };
  const app = await openFlowApp({ plays: { [MAIN]: both(RESEARCH), [RESEARCH]: both(MAIN) } });
  await Promise.all([app.tell(MAIN, "go"), app.tell(RESEARCH, "go")]);
  await app.quiet();
  for (const key of [MAIN, RESEARCH])
    expect((await app.texts(key)).filter((text) => text.includes(IDLE))).toHaveLength(1);
});

test.each(["reset", "deleted"] as const)(
  "if the recipient is %s, the sender gets one notice of it",
  async (end) => {
    const held = heldResearch();
    const desk = "agent:research:chat:desk";
    const asks: Play = async (actor) =>
      actor.input === "go"
        ? String((await actor.send(desk, "work", 0, "call", { notify: "idle" })).status)
        : "";
    const app = await openFlowApp({ plays: { [MAIN]: asks, [desk]: held.play } });
    const row = { ...(await app.session(RESEARCH)), key: desk, sessionId: "desk", kind: "other" } as const;
    await app.store.transaction((tx) => insertSession(tx, row));
    await app.tell(MAIN, "go");
    await until(async () => (await app.runs(desk))[0]?.state === "running");
    const facts = { engine: app.engine, settings: app.settings, dropTranscript: async () => {} };
    const ended = await (end === "reset" ? resetSession(facts, row) : deleteSession(facts, row));
    expect(ended).toMatchObject({ ok: true });
    await app.quiet();
    const told = await notices(app);
    expect(told.map(({ input }) => input.text)).toEqual([
      expect.stringContaining(`: that session was ${end}.`),
    ]);
  },
);

test("a notice about a session below a deleted one says that its work was stopped", async () => {
  const held = heldResearch();
  const desk = "agent:research:chat:desk";
  const child = "agent:research:subagent:child";
  const asks: Play = async (actor) =>
    actor.input === "go"
      ? String((await actor.send(child, "work", 0, "call", { notify: "idle" })).status)
      : "";
  const app = await openFlowApp({ plays: { [MAIN]: asks, [child]: held.play } });
  const row = { ...(await app.session(RESEARCH)), key: desk, sessionId: "desk", kind: "other" } as const;
  const below = { ...row, key: child, sessionId: "child", spawnedBy: desk, spawnDepth: 1 };
  await app.store.transaction(async (tx) => {
    await insertSession(tx, row);
    await insertSession(tx, below);
  });
  await app.tell(MAIN, "go");
  await until(async () => (await app.runs(child))[0]?.state === "running");
  const facts = { engine: app.engine, settings: app.settings, dropTranscript: async () => {} };
  await deleteSession(facts, row);
  await app.quiet();
  expect((await notices(app)).map(({ input }) => input.text)).toEqual([
    expect.stringContaining(": that session was stopped, because a session above it was deleted."),
  ]);
});

test("nobody is notified if the sender was reset or stopped meanwhile", async () => {
  for (const end of ["reset", "stop"] as const) {
    const held = heldResearch();
    const sends: Play = async (actor) => {
      await watches(actor);
      return end === "reset" ? "ok" : held.play(actor);
    };
    const app = await openFlowApp({ plays: { [MAIN]: sends, [RESEARCH]: held.play } });
    await app.tell(MAIN, "go");
    await until(async () => (await app.runs(RESEARCH))[0]?.state === "running");
    const facts = { engine: app.engine, settings: app.settings, dropTranscript: async () => {} };
    if (end === "reset") await resetSession(facts, await app.session(MAIN));
    else await app.engine.abort({ sessionKey: MAIN });
    held.release();
    await app.quiet();
    expect(await notices(app)).toEqual([]);
  }
});

test("it is refused for oneself, and together with announce", async () => {
  const app = await openFlowApp({
    plays: {
      [MAIN]: async (actor) => {
        const own = await actor.send(MAIN, "x", 0, "own", { notify: "idle" });
        const both = await actor.send(RESEARCH, "x", 0, "both", { notify: "idle", announce: "none" });
        return JSON.stringify([own, both]);
      },
    },
  });
  await app.tell(MAIN, "go");
  await app.quiet();
  const results = JSON.parse((await app.runs(MAIN))[0]?.reply ?? "[]");
  expect(results).toMatchObject([{ code: "invalid_argument" }, { code: "invalid_argument" }]);
  expect(await app.runs(RESEARCH)).toEqual([]);
});

async function crashAt(point: CrashPoint): Promise<boolean> {
  const dir = temporaryFolder();
  const plays = { [MAIN]: watches, [RESEARCH]: () => "done" };
  const first = await openFlowApp({ plays, dir, crash: point }).catch(() => undefined);
  if (first === undefined) return true;
  await first.tell(MAIN, "go", { runId: "from-a-person" }).catch(() => undefined);
  if (!(await diesAtWork(first))) return false;
  const second = await openFlowApp({ plays, dir });
  await second.quiet();
  const sent = (await second.runs(MAIN)).length > 0;
  expect((await notices(second)).map(({ state }) => state)).toEqual(sent ? ["ok"] : []);
  expect(await second.runs(RESEARCH)).toHaveLength(sent ? 1 : 0);
  await second.engine.stop(0);
  await second.store.close();
  return true;
}

test.each(["before", "after"] as const)(
  "I4: a crash %s any commit neither loses nor repeats the notice",
  async (when) => {
    expect(await crashAtEach(when, 100, crashAt.bind(undefined))).toBeGreaterThan(6);
  },
);
