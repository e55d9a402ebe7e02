// The list of unfinished runs: their state, model and usage so far, and the rights of its readers, on both
// stores.

import { describe, expect, test } from "vitest";
import type { TokenSettings } from "../../src/core/shapes/settings/settings.ts";
import { insertRun } from "../../src/store/queries/runs/runs.ts";
import { insertWait } from "../../src/store/queries/runs/waits.ts";
import { embeddedGround, postgresGround } from "../kit/engine/cluster.ts";
import { assistantText, quietWorld } from "../kit/engine/engine.ts";
import { until } from "../kit/until.ts";
import { sampleRun } from "../store/samples.ts";
import { type House, openHouse, type Play } from "./kit.ts";

const GROUNDS = [
  ["sqlite", embeddedGround],
  ["postgres", () => postgresGround()],
] as const;
const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const WRITER = "agent:writer:main";
const TOKENS: TokenSettings[] = [
  { token: "scoped", role: "operator", scopes: ["operator.write"], sessions: [RESEARCH] },
  { token: "reader", role: "operator", scopes: ["operator.read"] },
];

describe.each(GROUNDS)("on %s", (_, openGround) => {
  /**
   * Opens a gateway in which main has made one model call of a run and has two queued runs, and writer waits
   * for main.
   */
  async function busyHouse(): Promise<{ house: House; end: () => void }> {
    const held = Promise.withResolvers<void>();
    const play: Play = async (handle) => {
      const answer = assistantText(`first-${handle.run.runId}`, "looking");
      await handle.append({ ...answer, stopReason: "toolUse" });
      await held.promise;
      return "done";
    };
    const ground = await openGround();
    const world = quietWorld();
    const house = await openHouse({
      disk: await ground.open(world),
      world,
      gateway: { tokens: TOKENS },
      play,
    });
    for (const text of ["one", "two", "three"]) {
      const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text } });
      if (!accepted.ok) throw new Error(accepted.error);
    }
    await house.store.transaction(async (tx) => {
      const waiting = { runId: "waiter", agentId: "writer", chainId: "c", owner: "elsewhere" } as const;
      await insertRun(tx, sampleRun({ ...waiting, sessionKey: WRITER, state: "waiting", acceptedAt: 5 }));
      const ends = { callId: "call", deadlineAt: Number.MAX_SAFE_INTEGER, state: "open" } as const;
      const waiter = { waiterRunId: "waiter", waiterSessionKey: WRITER };
      await insertWait(tx, { ...ends, ...waiter, kind: "run", targetId: "unknown", targetSessionKey: MAIN });
    });
    const client = await house.client();
    await until(async () => (await client.request("runs.list", {})).runs[0]?.tokens === 5);
    return { house, end: held.resolve };
  }

  test("running, waiting and queued runs are listed with model and usage; a waiting run names the awaited session", async () => {
    const { house, end } = await busyHouse();
    const client = await house.client();
    await client.request("sessions.patch", { key: MAIN, label: "the release" });
    const { runs, truncated } = await client.request("runs.list", {});
    expect(truncated).toBe(false);
    expect(runs).toMatchObject([
      { sessionKey: MAIN, state: "running", label: "the release", summary: "one", tokens: 5, mayStop: true },
      { sessionKey: WRITER, state: "waiting", chainId: "c", waitingFor: [MAIN], acceptedAt: 5, tokens: 0 },
      { sessionKey: MAIN, state: "queued", summary: "three", tokens: 0, agentId: "main" },
      { sessionKey: MAIN, state: "queued", summary: "two", model: expect.stringContaining("/") },
    ]);
    const first = await client.request("runs.list", { limit: 2 });
    expect(first).toMatchObject({ truncated: true, runs: [{ state: "running" }, { state: "waiting" }] });
    end();
  });

  test("I3: queued runs of a session that were accepted in the same millisecond are listed in their order", async () => {
    const { house, end } = await busyHouse();
    const laneSeqs = [3, 5, 2, 4, 6];
    await house.store.transaction(async (tx) => {
      for (const [at, laneSeq] of laneSeqs.entries())
        await insertRun(tx, sampleRun({ runId: `same-${at}`, sessionKey: WRITER, laneSeq, acceptedAt: 5 }));
    });
    const { runs } = await (await house.client()).request("runs.list", {});
    const queued = runs.filter(({ sessionKey, state }) => sessionKey === WRITER && state === "queued");
    expect(queued.map(({ runId }) => runId)).toEqual(["same-4", "same-1", "same-3", "same-0", "same-2"]);
    end();
  });

  test("I9: a token lists only runs that it may see, without hidden sessions that they wait for, and says if it may stop", async () => {
    const { house, end } = await busyHouse();
    const scoped = await house.client({ token: "scoped" });
    expect((await scoped.request("runs.list", {})).runs).toEqual([]);
    const accepted = await house.engine.accept({ sessionKey: RESEARCH, input: { text: "mine" } });
    expect(accepted.ok).toBe(true);
    await house.store.transaction((tx) =>
      insertWait(tx, {
        ...{
          callId: "other",
          deadlineAt: Number.MAX_SAFE_INTEGER,
          state: "open",
          kind: "run",
          targetId: "unknown",
        },
        ...{ waiterRunId: accepted.ok ? accepted.value.run.runId : "", waiterSessionKey: RESEARCH },
        targetSessionKey: MAIN,
      }),
    );
    const own = (await scoped.request("runs.list", {})).runs;
    expect(own).toMatchObject([{ sessionKey: RESEARCH, summary: "mine", mayStop: true }]);
    expect(own[0]).not.toHaveProperty("waitingFor");
    const reader = await house.client({ token: "reader" });
    const seen = (await reader.request("runs.list", {})).runs;
    expect(seen).toHaveLength(5);
    expect(seen.every(({ mayStop }) => !mayStop)).toBe(true);
    end();
  });
});
