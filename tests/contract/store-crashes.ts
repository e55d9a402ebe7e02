// After a crash the store knows how many attempts each run has lost, and each lane (a session's queue of
// runs) keeps its order.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Entry } from "../../src/core/shapes/message.ts";
import type { Run } from "../../src/core/shapes/run.ts";
import {
  claimRun,
  idleLanes,
  lanesWithWork,
  moveHeld,
  requeueHeld,
} from "../../src/store/queries/runs/claims.ts";
import { getRun, insertRun } from "../../src/store/queries/runs/runs.ts";
import { insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry, appendHeld } from "../../src/store/queries/transcripts/append.ts";
import { readContext } from "../../src/store/queries/transcripts/transcripts.ts";
import type { Store } from "../../src/store/sql.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { assistantMessage, sampleRun, sampleSession, userMessage } from "../store/samples.ts";

const RUN = "run-1";
const LANE = "agent:main:main";

function toolResult(id: string, text: string): Entry {
  const content = [{ type: "text" as const, text }];
  return { id, role: "toolResult", toolCallId: id, toolName: "exec", content, isError: false, timestamp: 1 };
}

export function crashContract(store: () => Store): void {
  const accept = (over: Partial<Run> = {}) =>
    store().transaction(async (tx) => {
      const run = sampleRun({ laneSeq: 1, ...over });
      await insertSession(tx, sampleSession({ key: run.sessionKey, sessionId: `of ${run.sessionKey}` }));
      await insertRun(tx, run);
    });
  const fence = async (runId: string) => {
    const { attempt = 0 } = (await getRun(store().db, runId)) ?? {};
    return { runId, owner: "dead", attempt };
  };
  /** Begins an attempt. */
  const begin = async (runId = RUN) => {
    const attempt = (await fence(runId)).attempt + 1;
    const claim = { state: "running", owner: "dead", attempt, startedAt: 1_000 } as const;
    await store().transaction((tx) => claimRun(tx, { ...sampleRun({ runId }), ...claim }, undefined));
  };
  const write = (entry: Entry) =>
    store().transaction((tx) =>
      appendEntry(tx, { sessionKey: LANE, sessionId: "session-1", runId: RUN, entry }, plainRedactor),
    );
  const move = async (to: "waiting" | "queued") => {
    const held = await fence(RUN);
    await store().transaction((tx) => moveHeld(tx, held, to));
  };
  const crash = () => store().transaction((tx) => requeueHeld(tx));
  /** Stores entries in an attempt whose process then dies. */
  const lose = async (...entries: Entry[]) => {
    await begin();
    for (const entry of entries) await write(entry);
    await crash();
  };
  const counts = async () => {
    const run = await getRun(store().db, RUN);
    return [run?.crashes, run?.crashesInRow];
  };

  test("a damaged row of a dead process does not keep its other runs from being taken over", async () => {
    for (const n of [1, 2, 3]) {
      await accept({ runId: `r${n}`, sessionKey: `lane ${n}` });
      await begin(`r${n}`);
    }
    await store().transaction(async (tx) => {
      await sql`update runs set input_json = '{"text' where run_id = 'r1'`.execute(tx);
      await sql`update runs set route_json = 'x' where run_id = 'r2'`.execute(tx);
    });
    expect((await crash()).map(({ runId }) => runId).sort()).toEqual(["r1", "r2", "r3"]);
    for (const [n, unreadable] of [true, true, undefined].entries()) {
      expect((await getRun(store().db, `r${n + 1}`))?.input.unreadable).toBe(unreadable);
    }
  });

  test("I1: only the owner of a run, in its attempt, appends to the transcript; a repeated entry is kept", async () => {
    await accept();
    await begin();
    const held = await fence(RUN);
    const place = { sessionKey: LANE, sessionId: "session-1", runId: RUN };
    const append = (entry: Entry, by = held) =>
      store().transaction((tx) => appendHeld(tx, { ...place, entry }, plainRedactor, by));
    const first = toolResult("m1", "first");
    expect(await append(first)).toEqual(first);
    expect(await append(toolResult("m1", "second"))).toEqual(first);
    const said = assistantMessage("m2", "a sentence to find");
    expect(await append(said)).toEqual(said);
    const late = assistantMessage("m3", "too late");
    for (const by of [
      { ...held, owner: "another" },
      { ...held, attempt: held.attempt + 1 },
      { ...held, runId: "run-2" },
    ])
      expect(await append(late, by)).toBeUndefined();
    await crash();
    expect(await append(late)).toBeUndefined();
    expect(await append(toolResult("m1", "third"))).toBeUndefined();
    expect(await readContext(store().db, "session-1")).toEqual([first, said]);
  });

  test("poison runs: an attempt counts as lost if it answered no tool call, whatever else it wrote", async () => {
    await accept();
    await lose(userMessage("m1", "go"));
    expect(await counts()).toEqual([1, 1]);
    await lose(assistantMessage("m2", "I shall call a tool"), userMessage("m3", "steered"));
    expect(await counts()).toEqual([2, 2]);
    await lose(toolResult("m4", '{"status":"error","code":"outcome_unknown"}'));
    expect(await counts()).toEqual([3, 3]);
  });

  test("poison runs: if a tool call is answered, the count of consecutive lost attempts starts again", async () => {
    await accept();
    await lose();
    await lose();
    await lose(toolResult("m1", "done"));
    expect(await counts()).toEqual([3, 0]);
    await lose();
    expect(await counts()).toEqual([4, 1]);
  });

  test("poison runs: a crash is not counted for a run that only waits", async () => {
    await accept();
    await begin();
    await move("waiting");
    await crash();
    expect(await counts()).toEqual([0, 0]);
  });

  test("poison runs: a planned stop leaves the count unchanged", async () => {
    await accept();
    await lose();
    await begin();
    await move("queued");
    expect(await counts()).toEqual([1, 1]);
    await begin();
    await write(toolResult("m1", "done"));
    await move("queued");
    expect(await counts()).toEqual([1, 0]);
    await lose();
    expect(await counts()).toEqual([2, 1]);
  });

  test("poison runs: lanes continue in the order in which their runs crashed", async () => {
    const lane = (name: string, acceptedAt: number) =>
      accept({ runId: name, sessionKey: `agent:main:chat:${name}`, acceptedAt });
    await lane("poison", 1);
    await lane("neighbour", 2);
    await begin("poison");
    await crash();
    await begin("poison");
    await begin("neighbour");
    expect((await crash()).map((run) => run.runId)).toEqual(["neighbour", "poison"]);
    await lane("new", 3);
    const names = (keys: string[]) => keys.map((key) => key.split(":").at(-1));
    expect(names(await lanesWithWork(store().db))).toEqual(["new", "neighbour", "poison"]);
    const idle = await idleLanes(store().db, { limit: 9, appends: false });
    expect(names(idle)).toEqual(["new", "neighbour", "poison"]);
  });
}
