// Tests of waits for sub-agents' jobs when several processes share a store.

import { expect, test } from "vitest";
import { publishFlowEnd } from "../../src/flows/flow-events.ts";
import { endJob, getFlow, insertFlow } from "../../src/store/queries/chains/flows.ts";
import { decidePermission, openPermissions } from "../../src/store/queries/permissions.ts";
import { isAnswered, waitsOfCall } from "../../src/store/queries/runs/waits.ts";
import { askIn } from "../kit/engine/asking.ts";
import { type ClusterProcess, type OpenGround, openCluster } from "../kit/engine/cluster.ts";
import { endOf } from "../kit/engine/engine.ts";
import type { Actor, Play } from "../kit/engine/flow-app.ts";
import { until } from "../kit/until.ts";
import { CHATS, join, MAIN, two } from "./cluster-stage.ts";

const [CHILD = "", OTHER = ""] = CHATS;
const BOTH = `${[CHILD, OTHER].toSorted().join()} | `;
const OUTCOME = { status: "ok", result: "done" } as const;

const jobOf = (key: string): string => `job of ${key}`;
const callOf = ({ handle }: Actor): string => `${handle.run.runId}:wait`;

/** Starts two jobs in the same way as `sessions_spawn`. */
async function giveJobs({ handle }: Actor, { app }: ClusterProcess): Promise<void> {
  const { runId, chainId, sessionId } = handle.run;
  await app.engine.commit(async (unit) => {
    for (const targetKey of [CHILD, OTHER]) {
      if ((await getFlow(unit.tx, jobOf(targetKey))) !== undefined) continue;
      const requester = { requesterKey: MAIN, requesterSessionId: sessionId, requesterRunId: runId };
      const job = { flowId: jobOf(targetKey), kind: "spawn", chainId, targetKey, open: true } as const;
      await insertFlow(unit.tx, {
        ...job,
        ...requester,
        turnsMax: 0,
        requestText: "work",
        createdAt: unit.now,
      });
    }
  });
}

/** Waits for jobs in the same way as the tool. Returns those that have ended, and those that have not. */
async function waitFor(actor: Actor, { app }: ClusterProcess, wanted: "all" | "any"): Promise<string> {
  const { wait } = actor.handle;
  const callId = callOf(actor);
  const targets = [CHILD, OTHER].map((sessionKey) => ({ id: jobOf(sessionKey), sessionKey }));
  if ((await waitsOfCall(app.store.db, callId)).length === 0) {
    const opened = await app.engine.commit((unit) =>
      wait.open(unit, { callId, kind: "job", targets, deadlineAt: unit.now + 60_000 }),
    );
    if (!opened.ok) return opened.code;
  }
  const waits = await waitsOfCall(app.store.db, callId);
  const ended = await actor.handle.duringCall(() => wait.settle(waits, wanted));
  const keys = (areAnswered: boolean): string =>
    ended
      .filter((row) => isAnswered(row) === areAnswered)
      .map((row) => row.targetSessionKey)
      .sort()
      .join();
  return `${keys(true)} | ${keys(false)}`;
}

async function finish({ app }: ClusterProcess, key: string): Promise<void> {
  await app.engine.commit(async (unit) => {
    const flow = await getFlow(unit.tx, jobOf(key));
    await endJob(unit.tx, jobOf(key), { reason: "announced", outcome: OUTCOME, at: unit.now });
    if (flow !== undefined) publishFlowEnd(unit, flow, { runId: jobOf(key) });
  });
}

const isWaiting = async ({ app }: ClusterProcess): Promise<boolean> =>
  (await app.runs(MAIN)).some(({ state }) => state === "waiting");

export function jobsContract(openGround: OpenGround): void {
  /** Returns a turn of `main` that starts two jobs and waits. The nth attempt runs in the nth process. */
  function stage(wanted: "all" | "any", more: Record<string, Play> = {}) {
    const processes: ClusterProcess[] = [];
    const main: Play = async (actor) => {
      const process = processes[actor.handle.run.attempt - 1];
      if (process === undefined) throw new Error("no process for this attempt");
      await giveJobs(actor, process);
      return waitFor(actor, process, wanted);
    };
    return { processes, plays: { [MAIN]: main, ...more } };
  }

  test.each([["sends"], ["cannot send"]])(
    "a run waits for jobs that end in another process, which %s a hint",
    async (how) => {
      const { processes, plays } = stage("all");
      const cluster = await openCluster(openGround);
      const a = await join(cluster, plays);
      processes.push(a);
      const run = await a.app.tell(MAIN, "go");
      await until(() => isWaiting(a));
      const b = await join(cluster, plays);
      if (how === "cannot send") cluster.ground.cutWire(true);
      await finish(b, CHILD);
      await finish(b, OTHER);
      expect(await endOf(a.app.engine, run.runId, 20_000)).toMatchObject({ reply: BOTH, attempt: 1 });
    },
  );

  test("a decision about a permission reaches the run that waits for it, even if its hint is lost", async () => {
    const plays: Record<string, Play> = {
      [MAIN]: ({ handle }) => askIn({ engine: a.app.engine }, handle, { title: "deploy" }),
    };
    const cluster = await openCluster(openGround);
    const a = await join(cluster, plays);
    const run = await a.app.tell(MAIN, "go");
    const { app } = await join(cluster, plays);
    const { id } = await until(async () => (await openPermissions(app.store.db, app.engine.now()))[0]);
    cluster.ground.cutWire(true);
    await app.engine.commit(async (unit) => {
      await decidePermission(unit.tx, id, { decision: "allow", scope: "once", by: "owner", atMs: unit.now });
    });
    expect(await endOf(a.app.engine, run.runId, 20_000)).toMatchObject({ reply: "allow" });
  });

  test("a wait for any of several jobs ends with the first of them", async () => {
    const { processes, plays } = stage("any");
    const cluster = await openCluster(openGround);
    const a = await join(cluster, plays);
    processes.push(a);
    const run = await a.app.tell(MAIN, "go");
    await until(() => isWaiting(a));
    await finish(await join(cluster, plays), OTHER);
    expect(await endOf(a.app.engine, run.runId, 20_000)).toMatchObject({ reply: `${OTHER} | ${CHILD}` });
  });

  test("I4: if a process dies, another one continues its wait for the same jobs and gets outcomes that arrived in between", async () => {
    const { processes, plays } = stage("all");
    const cluster = await openCluster(openGround);
    const a = await join(cluster, plays);
    processes.push(a);
    const run = await a.app.tell(MAIN, "work");
    await until(() => isWaiting(a));
    const b = await join(cluster, plays);
    processes.push(b);
    a.die();
    await finish(b, CHILD);
    await until(async () => (await b.app.runs(MAIN)).some(({ attempt }) => attempt === 2));
    await finish(b, OTHER);
    expect(await endOf(b.app.engine, run.runId, 20_000)).toMatchObject({ reply: BOTH, attempt: 2 });
  });

  test("I7: if a session waits for a job while its sub-agent sends to the session, exactly one of the two is refused", async () => {
    const codes: unknown[] = [];
    const { processes, plays } = stage("all", {
      [CHILD]: async ({ send }) => {
        const { code = "ok" } = await send(MAIN, "and you?", 60);
        codes.push(code);
        for (const key of [CHILD, OTHER]) await finish(processes[0] as ClusterProcess, key);
        return "done";
      },
    });
    const { a, b } = await two(openGround, plays);
    processes.push(a);
    const [asked, child] = await Promise.all([a.app.tell(MAIN, "go"), b.app.tell(CHILD, "go")]);
    const end = await endOf(a.app.engine, asked.runId, 20_000);
    await endOf(a.app.engine, child.runId, 20_000);
    codes.push(end.reply === "wait_cycle" ? "wait_cycle" : "ok");
    expect(codes.toSorted()).toEqual(["ok", "wait_cycle"]);
  });
}
