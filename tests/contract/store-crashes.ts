// The runs of a process that died: others take them over, and only the owner of an attempt writes.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Entry } from "../../src/core/shapes/message.ts";
import type { Run } from "../../src/core/shapes/run.ts";
import { claimRun, requeueHeld } from "../../src/store/queries/runs/claims.ts";
import { getRun, insertRun } from "../../src/store/queries/runs/runs.ts";
import { insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { appendHeld } from "../../src/store/queries/transcripts/append.ts";
import { readContext } from "../../src/store/queries/transcripts/transcripts.ts";
import type { Store } from "../../src/store/sql.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { assistantMessage, sampleRun, sampleSession } from "../store/samples.ts";

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
    await store().transaction((tx) => claimRun(tx, { ...sampleRun({ runId }), ...claim }));
  };
  const crash = () => store().transaction((tx) => requeueHeld(tx, 1_000));

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
}
