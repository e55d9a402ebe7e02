// Messages to and from sub-agents: which sessions may converse, which messages are refused, and what remains
// of a deleted sub-agent.

import { expect, test } from "vitest";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { endOf } from "../../kit/engine/engine.ts";
import { openSpawnApp, type SpawnApp, type SpawnPlay } from "../../kit/engine/spawn-app.ts";
import { until } from "../../kit/until.ts";
import { settingsWith } from "../../tools/app.ts";
import { MAIN, RESEARCH, turns } from "../conversation/asking.ts";

function settings(subagents: Partial<Settings["subagents"]> = {}): Settings {
  return settingsWith({
    subagents,
    tools: { subagents: { allow: ["*"], deny: [] } },
    ...turns(2),
  });
}

async function childOf(app: SpawnApp, task: string): Promise<string> {
  const result = await app.call(MAIN, "sessions_spawn", { task });
  await app.quiet();
  return String(result.childSessionKey);
}

const steps = async (app: SpawnApp, key: string): Promise<string[]> =>
  (await app.runs(key)).map((run) => run.flow?.step ?? run.kind);

test("if a sub-agent asks another session, it gets one reply, without reply turns", async () => {
  const results: Record<string, unknown>[] = [];
  const play: SpawnPlay = async (turn) => {
    if (turn.input === "ask") {
      results.push(await turn.tool("sessions_send", { sessionKey: RESEARCH, message: "well?" }));
    }
    return `words of ${turn.session.agentId}`;
  };
  const app = await openSpawnApp({ settings: settings(), play });
  const child = await childOf(app, "ask");
  expect(results).toMatchObject([{ status: "ok", reply: "words of research" }]);
  expect(await steps(app, RESEARCH)).toEqual(["round1"]);
  expect(await steps(app, child)).toEqual(["task", "announce"]);
});

test("if a sub-agent receives a message, the conversation may have reply turns", async () => {
  const app = await openSpawnApp({
    settings: settings(),
    play: (turn) => `words of ${turn.session.agentId}`,
  });
  const child = await childOf(app, "x");
  await app.call(RESEARCH, "sessions_send", { sessionKey: child, message: "well?", timeoutSeconds: 0 });
  await app.quiet();
  expect(await steps(app, child)).toEqual(["task", "announce", "round1", "reply"]);
  expect(await steps(app, RESEARCH)).toEqual(["reply"]);
});

test("a sub-agent can't send to its requester during its job, because the requester gets the job's result", async () => {
  const results: Record<string, unknown>[] = [];
  const play: SpawnPlay = async (turn) => {
    if (turn.session.key !== MAIN) {
      results.push(await turn.tool("sessions_send", { sessionKey: MAIN, message: "done" }));
    }
    return "done";
  };
  const app = await openSpawnApp({ settings: settings(), play });
  await childOf(app, "x");
  expect(results.map((result) => result.code)).toEqual(["open_flow", "open_flow"]);
  expect(await steps(app, MAIN)).toEqual(["append"]);
});

test("after a sub-agent is deleted, a search finds only its announcement", async () => {
  const play: SpawnPlay = async (turn) => {
    if (turn.session.key !== MAIN) return turn.step === "announce" ? "the sum" : "pomegranate";
    if (turn.handle.run.input.provenance !== undefined) return "";
    return JSON.stringify(await turn.tool("sessions_spawn", { task: "pomegranate", cleanup: "delete" }));
  };
  const app = await openSpawnApp({ settings: settings(), play });
  const run = await app.tell(MAIN, "go");
  const { childSessionKey } = JSON.parse((await endOf(app.engine, run.runId)).reply ?? "{}");
  await app.quiet();
  await until(async () => (await app.session(childSessionKey)) === undefined);
  expect(await app.call(MAIN, "sessions_search", { query: "pomegranate" })).toMatchObject({ count: 0 });
  expect(await app.call(MAIN, "sessions_history", { sessionKey: childSessionKey })).toMatchObject({
    status: "error",
    code: "session_not_found",
  });
  expect(await app.call(MAIN, "subagents", {})).toMatchObject({ count: 0 });
  expect((await app.texts(MAIN)).at(-1)).toContain("Result: the sum");
});
