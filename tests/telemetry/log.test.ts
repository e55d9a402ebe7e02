// The log of a whole gateway about runs that fail in different ways. Each line names its part, the run, the
// session and the chain.

import { expect, test } from "vitest";
import { acceptByMode } from "../../src/flows/conversation/direct.ts";
import { insertDelivery } from "../../src/store/queries/channels/deliveries.ts";
import type { ServedRequest } from "../kit/model-server/requests.ts";
import type { Answer } from "../kit/model-server/server.ts";
import { call, httpError, serverError } from "../kit/model-server/steps.ts";
import { fakeWorld, type LogLine } from "../kit/world.ts";
import { openStage } from "./kit.ts";

const RESEARCH = "agent:research:main";
const WRITER = "agent:writer:main";
const AGENTS = { list: [{ id: "main", default: true }, { id: "research" }, { id: "writer" }] };
const STAGE = { traces: { enabled: false }, config: { agents: AGENTS } };
const asking = (sessionKey: string) =>
  call("sessions_send", { sessionKey, message: "well?", timeoutSeconds: 30 });

/** Answers each word of a person with a different failure. */
function trouble(request: ServedRequest, index: number): Answer {
  const { agentId, step, toolResults, lastUserText = "" } = request;
  if (step === "announce" || request.system.includes("announce step")) return "ANNOUNCE_SKIP";
  if (step === "reply") return "REPLY_SKIP";
  if (lastUserText.endsWith("be refused")) return httpError(400, "that won't do");
  if (lastUserText.includes("be down") && index === 0) return serverError();
  if (toolResults.length > 0) return "so it is";
  if (lastUserText.includes("read")) return [call("read", { path: "nowhere.txt" })];
  if (lastUserText.includes("spawn")) return [call("sessions_spawn", { task: "look it up" })];
  if (lastUserText.includes("go round")) return [asking(RESEARCH)];
  if (agentId === "research" && lastUserText.includes("well?")) return [asking(WRITER)];
  if (agentId === "writer" && lastUserText.includes("well?")) return [asking("agent:main:main")];
  return "fine";
}

const linesOf = (logged: readonly LogLine[], text: string) =>
  logged.filter((line) => line.text.includes(text));

/** Returns the log line with this text, which must exist. */
function lineOf(logged: readonly LogLine[], text: string): LogLine {
  const [found] = linesOf(logged, text);
  if (found === undefined)
    throw new Error(`no line "${text}" among ${JSON.stringify(logged.map((one) => one.text))}`);
  return found;
}

function expectIds(logged: readonly LogLine[]): void {
  expect(logged.filter(({ fields }) => typeof fields.part !== "string")).toEqual([]);
  const about = logged.filter(({ fields }) => "runId" in fields || "chainId" in fields);
  expect(about.length).toBeGreaterThan(0);
  for (const { fields, text } of about) {
    const id = expect.stringMatching(/./);
    expect(fields, text).toMatchObject({
      runId: id,
      sessionKey: expect.stringMatching(/^agent:/),
      chainId: id,
    });
  }
}

test("a run that fails in a model call, a tool, a wait, a delivery or its process is logged with all its ids", async () => {
  const world = fakeWorld({ clock: "real" });
  const stage = await openStage({ script: trouble, ...STAGE, world });
  const { logged } = world;
  await stage.says("be down for a moment");
  await stage.quiet();
  const failedRun = await stage.says("be refused");
  for (const message of ["read it", "spawn somebody", "go round"]) await stage.says(message);
  await stage.quiet();
  expectIds(logged);
  expect(lineOf(logged, "model retry")).toMatchObject({ level: "warn", fields: { part: "agent", tries: 1 } });
  const failed = { runId: failedRun, sessionKey: "agent:main:main", state: "error", code: "run_failed" };
  expect(lineOf(logged, "a run failed")).toMatchObject({
    level: "warn",
    fields: { part: "engine", ...failed },
  });
  const tool = { level: "debug", fields: { part: "tools", tool: "read" } };
  expect(lineOf(logged, "a tool call failed")).toMatchObject(tool);
  const refused = { part: "flows", sessionKey: WRITER, tool: "sessions_send", code: "wait_cycle" };
  expect(lineOf(logged, "was refused")).toMatchObject({ level: "info", fields: refused });
  const ofChild = linesOf(logged, "a run started").filter(({ fields }) =>
    /subagent/.test(String(fields.sessionKey)),
  );
  expect(ofChild.length).toBeGreaterThan(0);
  // Simulates a crash with two rows: a run that a dead process holds, and a text that cannot be delivered.
  await stage.app.store.transaction(async (tx) => {
    await insertDelivery(tx, {
      ...{ id: "d", sessionKey: "agent:main:main", kind: "send", text: "hello", runId: failedRun },
      ...{ route: { channel: "telegram", to: "1" }, state: "pending", createdAt: world.clock.now() },
    });
    const held = { state: "running", owner: "dead", ended_at: null, code: null } as const;
    await tx.updateTable("runs").set(held).where("run_id", "=", failedRun).execute();
  });
  await stage.stop();
  logged.length = 0;
  const again = await openStage({
    script: () => "fine",
    ...STAGE,
    world,
    home: stage.home,
  });
  await again.quiet();
  await expect.poll(() => linesOf(logged, "was not delivered").length, { interval: 10 }).toBe(1);
  await again.stop();
  expectIds(logged);
  expect(lineOf(logged, "a stop interrupted").fields).toMatchObject({ part: "engine", runId: failedRun });
  const undelivered = { part: "channels", deliveryId: "d", runId: failedRun, channel: "telegram" };
  expect(lineOf(logged, "was not delivered")).toMatchObject({ level: "warn", fields: undelivered });
});

test("a run that reads another run's message is logged with both ids", async () => {
  const world = fakeWorld({ clock: "real" });
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const script = async ({ toolResults }: ServedRequest): Promise<Answer> => {
    if (toolResults.length > 0) return "heard both";
    asked.resolve();
    await answer.promise;
    return [call("sessions_list")];
  };
  const stage = await openStage({ script, ...STAGE, world });
  const route = { channel: "webchat", to: "agent:main:main" };
  const says = async (text: string): Promise<string> => {
    const request = { sessionKey: "agent:main:main", input: { text }, route };
    const { engine } = stage.app;
    const accepted = await engine.commit((unit) => acceptByMode(engine, unit, request, "steer"));
    if (!accepted.ok) throw new Error(accepted.error);
    return accepted.value.run.runId;
  };
  const runId = await says("first");
  await asked.promise;
  const steeredRunId = await says("second");
  answer.resolve();
  await stage.quiet();
  await stage.stop();
  expectIds(world.logged);
  const line = lineOf(world.logged, "read the next message");
  expect(line).toMatchObject({ level: "debug", fields: { part: "engine", runId, steeredRunId } });
});
