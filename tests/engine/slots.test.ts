// Slots: a full pool delays only its own lanes, a pause holds none, and people go before sub-agents.

import { expect, test } from "vitest";
import type { ModelPort } from "../../src/agent/model/model.ts";
import { makeSessions } from "../kit/engine/engine.ts";
import type { Play } from "../kit/engine/flow-app.ts";
import { ended, executed, midway, openStage, runOf } from "../kit/engine/lease-stage.ts";
import { scriptedModel } from "../kit/scripted-model.ts";

const [FIRST, SECOND, CHAT] = [
  "agent:main:chat:one",
  "agent:main:chat:two",
  "agent:main:chat:three",
] as const;
const [CHILD, NEXT] = ["agent:main:subagent:1", "agent:main:subagent:2"] as const;

test("I6: a free slot goes to a chat at once, if a sub-agent of the same process waits for a full pool", async () => {
  const { world, cluster, until } = await openStage();
  const [child, first, second, chat] = [midway(), midway(), midway(), midway()];
  const plays = { [CHILD]: child.play, [FIRST]: first.play, [SECOND]: second.play, [CHAT]: chat.play };
  const options = { plays, maxConcurrent: 3, choices: { subagents: { maxConcurrent: 1 } } };
  const a = await cluster.join(options, world);
  const b = await cluster.join(options, world);
  await makeSessions(a.app.store, FIRST, SECOND, CHAT, CHILD, NEXT);
  const runs = [await a.app.tell(CHILD, "go"), await a.app.tell(FIRST, "go"), await a.app.tell(SECOND, "go")];
  await Promise.all([child.began, first.began, second.began]);
  runs.push(await b.app.tell(NEXT, "go"), await b.app.tell(CHAT, "go"));
  first.goOn();
  // Long enough for the hint about the slot, and too short for a process to look for idle lanes.
  await world.advance(100);
  await chat.began;
  for (const one of [child, second, chat]) one.goOn();
  for (const { runId } of runs) await until(() => ended(b, runId));
  expect(await b.app.engine.load()).toMatchObject({ queued: 0 });
});

test("I6: a run that pauses before it asks its model again holds no slot", async () => {
  const { world, cluster, until } = await openStage();
  const [paused, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const model = scriptedModel(() => "done");
  const port: ModelPort = {
    async call(request, ...how) {
      const pause = (): Promise<void> => {
        paused.resolve();
        return over.promise;
      };
      await request.pauseRetry?.(pause, 60_000);
      return model.call(request, ...how);
    },
  };
  const chat = midway();
  const plays = { [FIRST]: executed(() => a, port), [CHAT]: chat.play };
  const a = await cluster.join({ plays, maxConcurrent: 1 }, world);
  await makeSessions(a.app.store, FIRST, CHAT);
  const limited = await a.app.tell(FIRST, "go");
  await paused.promise;
  const other = await a.app.tell(CHAT, "go");
  await chat.began;
  over.resolve();
  chat.goOn();
  for (const { runId } of [limited, other]) await until(() => ended(a, runId));
});

test("I6: a sub-agent gives its slot to a person between two steps, and continues afterwards", async () => {
  const { world, cluster, until } = await openStage();
  const chat = midway();
  const working = Promise.withResolvers<void>();
  let hasBegun = false;
  const child: Play = async ({ handle }) => {
    working.resolve();
    while (!hasBegun) {
      await handle.steered();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return "done";
  };
  const a = await cluster.join({ plays: { [CHILD]: child, [CHAT]: chat.play }, maxConcurrent: 1 }, world);
  await makeSessions(a.app.store, CHAT, CHILD);
  const task = await a.app.tell(CHILD, "go");
  await working.promise;
  const question = await a.app.tell(CHAT, "go");
  await chat.began;
  hasBegun = true;
  expect(await runOf(a, task.runId)).toMatchObject({ state: "waiting" });
  chat.goOn();
  for (const { runId } of [question, task]) await until(() => ended(a, runId));
  expect(await runOf(a, task.runId)).toMatchObject({ state: "ok", attempt: 1 });
});
