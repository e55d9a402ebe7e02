// Requests of a run to an ACP agent that starts slowly or asks for permission, under the lease of its process. The
// program is a real process, so the clock stands still while it works.

import { join } from "node:path";
import { env } from "node:process";
import { expect, test } from "vitest";
import type { AgentSettings } from "../../../src/core/shapes/settings/settings.ts";
import { openRuntime } from "../../../src/features/acp/run.ts";
import { LEASE_MS } from "../../../src/store/queries/processes.ts";
import { Passes } from "../../../src/tools/passes.ts";
import { ACP_AGENT } from "../../kit/acp-agent.ts";
import type { ClusterProcess } from "../../kit/engine/cluster.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { allow, ended, executed, link, openStage, runOf } from "../../kit/engine/lease-stage.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { until } from "../../kit/until.ts";
import type { FakeWorld } from "../../kit/world.ts";
import { agentSettings, type Choices, settingsWith } from "../../tools/app.ts";
import { logOf } from "./kit.ts";

const MAIN = "agent:main:main";
/** Time for which an ACP agent may take to connect to its session tools. */
const TOOLS_MAX_MS = 30_000;

/** An agent in a program of its own, which a process reaches over ACP. */
function acpAgent(process: () => ClusterProcess, world: FakeWorld) {
  const home = temporaryFolder();
  const passes = new Passes(() => crypto.randomUUID());
  const settings = settingsWith();
  const opened = openRuntime({
    ...{ world, version: "test", passes, environment: env, launcher: ["true"] },
    settings: { ...settings, store: { ...settings.store, dir: home } },
    gatewayUrl: () => "ws://127.0.0.1:1",
    engine: () => process().app.engine,
  });
  cleanup(async () => opened.close?.());
  const runtime: AgentSettings["runtime"] = {
    ...{ type: "acp", command: ACP_AGENT, env: { ACP_LOG: join(home, "log"), ACP_TOOLS: "never" } },
    ...{ cwd: home, permissions: "ask", askSeconds: 600, sessionTools: true, idleMinutes: 1 },
  };
  const choices: Choices = { agents: [agentSettings("main", { runtime })] };
  const play = executed(
    process,
    scriptedModel(() => "unused"),
    { runtimes: new Map([["acp", async () => opened]]) },
  );
  return {
    options: { plays: { [MAIN]: play }, choices },
    log: () => logOf(home),
    /** Resolves when the program waits for its tools. The clock stands still meanwhile. */
    opened: () => until(() => world.pendingDelays().includes(TOOLS_MAX_MS)),
    /** Lets the gateway know that the program has its tools. */
    listed: () => passes.noteListed(MAIN),
  };
}

/** Starts a process with an ACP agent, which gets this message and waits for its tools. */
async function askAgent(text: string) {
  const { world, cluster, pass, until: untilLater } = await openStage();
  const ofA = link();
  const agent = acpAgent(() => a, world);
  const a = await cluster.join(agent.options, world, ofA.through);
  const { runId } = await a.app.tell(MAIN, text);
  await agent.opened();
  return { pass, untilLater, ofA, agent, a, runId };
}

test("a prompt is sent to an ACP agent that started slowly only after the lease was renewed", async () => {
  const { pass, untilLater, ofA, agent, a, runId } = await askAgent("say hello");
  ofA.beats = "fail";
  await pass(LEASE_MS);
  agent.listed();
  await pass(LEASE_MS);
  expect(agent.log()).not.toContain("prompt say hello");
  ofA.beats = "pass";
  await pass(LEASE_MS);
  await untilLater(() => ended(a, runId));
  expect(agent.log()).toContain("prompt say hello");
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1 });
});

test("an ACP agent gets a permission only after the lease was renewed", async () => {
  const { pass, untilLater, ofA, agent, a, runId } = await askAgent("ask");
  agent.listed();
  const { id } = await until(() => a.app.store.db.selectFrom("permissions").select("id").executeTakeFirst());
  ofA.beats = "fail";
  await pass(LEASE_MS);
  await allow(a, id);
  await pass(LEASE_MS);
  expect(agent.log()).not.toContain("permission yes");
  ofA.beats = "pass";
  await pass(LEASE_MS);
  await untilLater(() => ended(a, runId));
  expect(agent.log()).toContain("permission yes");
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1 });
});
