// The trace of a chain. The chain's process is killed during its work, and another real process continues the
// work.

import { expect, test } from "vitest";
import { cleanup, temporaryFolder } from "../kit/engine/engine.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { call } from "../kit/model-server/steps.ts";
import { startCollector } from "../kit/otlp-collector.ts";
import { writeHome } from "../kit/process/fleet.ts";
import { startProcess } from "../kit/process/gateway-process.ts";
import { configOf, openStage } from "./kit.ts";

const WAIT_MS = 20_000;

test("TR1: spans of a killed process and of the next process form one trace, with each run once", async () => {
  const collector = await startCollector();
  const asked = Promise.withResolvers<void>();
  let silent = true;
  const model = await startModelServer(({ agentId, step, toolResults }) => {
    if (step === "reply" || step === "announce") return "REPLY_SKIP";
    if (agentId === "main" && toolResults.length === 0)
      return [call("sessions_send", { sessionKey: "agent:research:main", message: "x", timeoutSeconds: 60 })];
    if (agentId === "main") return "it said yes";
    if (!silent) return "yes";
    asked.resolve();
    return [{ step: "hang" }];
  });
  cleanup(() => model.close());
  const home = temporaryFolder();
  writeHome(home, configOf(model.url, collector.url));
  const first = await startProcess({ home });
  const client = await first.connect();
  await client.call("chat.send", { sessionKey: "main", message: "ask them", idempotencyKey: "the-run" });
  await asked.promise;
  // The first model call of main has ended, and its span has been sent or is being sent.
  await expect.poll(() => collector.spans.length, { timeout: WAIT_MS }).toBe(1);
  await first.end("SIGKILL");
  silent = false;
  const second = await startProcess({ home });
  const names = () => collector.spans.map(({ name }) => name);
  await expect.poll(names, { timeout: WAIT_MS }).toContain("invoke_agent main");
  await second.end("SIGTERM");
  const [tree, ...more] = collector.trees();
  expect(more).toEqual([]);
  expect(tree?.slice(0, 5)).toEqual([
    "invoke_agent main",
    "  chat test-model",
    "  execute_tool sessions_send",
    "    invoke_agent research (round1)",
    "      chat test-model",
  ]);
  const attempts = (name: string) =>
    collector.spans.find((span) => span.name === name && span.attributes["parley.flow_step"] !== "reply")
      ?.attributes["parley.attempt"];
  expect([attempts("invoke_agent main"), attempts("invoke_agent research")]).toEqual([2, 2]);
  expect(new Set(collector.spans.map(({ resource }) => resource["service.instance.id"])).size).toBe(2);
});

test("if a planned stop returned a run to its lane, the run is traced once, by the process in which it ends", async () => {
  const asked = Promise.withResolvers<void>();
  const first = await openStage({
    script: () => {
      asked.resolve();
      return [{ step: "hang" }];
    },
  });
  await first.says("hello");
  await asked.promise;
  await first.stop();
  const { home, collector } = first;
  const second = await openStage({ script: () => "here I am", home, collector });
  await second.quiet();
  await second.stop();
  expect(collector.trees()).toEqual([
    ["invoke_agent main", "  chat test-model !model_aborted", "  chat test-model"],
  ]);
});
