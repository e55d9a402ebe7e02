// Several gateways with a due job in their shared store. One of them starts the job, once.

import { expect, test } from "vitest";
import { removeJob, updateJob } from "../../../src/features/cron/jobs.ts";
import { listTurns, moveJob } from "../../../src/features/cron/store.ts";
import { setDeadline } from "../../../src/store/queries/deadlines.ts";
import { two } from "../../contract/cluster-stage.ts";
import type { ClusterProcess, OpenGround } from "../../kit/engine/cluster.ts";
import { until } from "../../kit/until.ts";
import { ADMIN, add, cronKey, jobsOf } from "./kit.ts";

const schedule = { kind: "every", everyMs: 3_600_000 } as const;

/** Sets the job's due time to now. */
async function fallsDue({ app }: ClusterProcess, id: string): Promise<void> {
  await app.store.transaction(async (tx) => {
    const dueAt = app.engine.now() - 10;
    await moveJob(tx, id, dueAt);
    await setDeadline(tx, { kind: "cron", key: id, dueAt });
  });
}

/** Makes all processes check for due jobs at the same moment. */
function lookAround(...processes: ClusterProcess[]): void {
  for (const { app } of processes)
    void app.engine.commit((unit) => unit.setDeadline({ kind: "none", key: "x", dueAt: unit.now }));
}

export function clusterContract(openGround: OpenGround): void {
  test("TU1: if two processes notice a due time at the same moment, it starts one run", async () => {
    const { a, b } = await two(openGround, {});
    const ids: string[] = [];
    for (let made = 0; made < 8; made += 1)
      ids.push((await add(a.app, { schedule, message: `job ${made}` })).id);
    for (let round = 1; round <= 4; round += 1) {
      for (const id of ids) await fallsDue(a, id);
      lookAround(a, b, a, b);
      await until(async () => {
        const turns = await Promise.all(ids.map((id) => listTurns(b.app.store.db, id, 10)));
        return turns.every((of) => of.length >= round && of.every(({ state }) => state === "ok"));
      });
      await b.app.quiet();
      for (const id of ids) expect(await b.app.runs(cronKey(id)), `round ${round}`).toHaveLength(round);
    }
  });

  test("TU1: if a process dies before a due time, another process starts the job", async () => {
    const { a, b } = await two(openGround, {});
    const { id } = await add(a.app, { schedule });
    a.die();
    await fallsDue(b, id);
    lookAround(b);
    await until(async () => (await listTurns(b.app.store.db, id, 10))[0]?.state === "ok");
    expect(await b.app.runs(cronKey(id))).toHaveLength(1);
  });

  test("if one process edits a job while another process starts it, neither change is lost", async () => {
    const { a, b } = await two(openGround, {});
    for (let round = 0; round < 6; round += 1) {
      const { id } = await add(a.app, { schedule });
      await fallsDue(a, id);
      lookAround(b);
      const change =
        round % 2 === 0
          ? updateJob(jobsOf(a.app), ADMIN, id, { enabled: false })
          : removeJob(jobsOf(a.app), ADMIN, id, async () => {});
      expect((await change).ok).toBe(true);
      await until(() => a.app.isQuiet());
      const turns = await listTurns(b.app.store.db, id, 10);
      expect(turns.length).toBeLessThanOrEqual(1);
      const left = await b.app.store.db
        .selectFrom("deadlines")
        .selectAll()
        .where("kind", "=", "cron")
        .where("key", "=", id)
        .execute();
      expect(left).toEqual([]);
    }
  });
}
