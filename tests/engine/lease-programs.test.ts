// Requests of a run to MCP servers that start slowly, under the lease of its process. The servers are real
// processes, so the clock stands still while they work.

import { expect, test } from "vitest";
import { LEASE_MS } from "../../src/store/queries/processes.ts";
import { ended, executed, link, openStage, runOf } from "../kit/engine/lease-stage.ts";
import { scriptedModel } from "../kit/scripted-model.ts";
import { until } from "../kit/until.ts";
import { badServer, mcpWith, openOutside, openWitness } from "../tools/mcp-kit.ts";

const MAIN = "agent:main:main";
/** Maximum pause before the first restart of an MCP server. */
const RESTART_MS = 1_500;
/** An MCP tool whose server exits at each call. */
const DIES = { name: "read-and-die", inputSchema: { type: "object" } };

test("a call of a repeatable tool is sent to a restarted MCP server only after the lease was renewed", async () => {
  const { world, cluster, pass, until: untilLater } = await openStage();
  const witness = await openWitness();
  const tools = [{ ...DIES, annotations: { readOnlyHint: true } }];
  const mcp = mcpWith([badServer("desk", { witness: witness.port, tools, slow: true })]);
  const outside = openOutside(mcp, world);
  const model = scriptedModel((_, at) =>
    at === 0 ? { toolCalls: [{ name: "mcp__desk__read-and-die" }] } : "done",
  );
  const ofA = link();
  const play = executed(() => a, model, { outside });
  const a = await cluster.join({ plays: { [MAIN]: play }, choices: { tools: { mcp } } }, world, ofA.through);
  const { runId } = await a.app.tell(MAIN, "work");
  (await witness.life(0)).socket.write("go\n");
  await until(() => outside.statuses()[0]?.state === "down");
  await pass(RESTART_MS);
  const again = await witness.life(1);
  ofA.beats = "fail";
  await pass(LEASE_MS);
  again.socket.write("go\n");
  await until(() => outside.statuses()[0]?.state === "ready");
  await pass(LEASE_MS);
  expect(again.events).not.toContain("call read-and-die");
  ofA.beats = "pass";
  await pass(LEASE_MS);
  await untilLater(() => ended(a, runId));
  expect(again.events).toContain("call read-and-die");
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1 });
});
