// Traces of agents that are outside programs.

import { expect, test } from "vitest";
import { startCollector } from "../../kit/otlp-collector.ts";
import { openStage } from "./kit.ts";

test("an outside program's run and tool calls are traced; a send with its session's token is a span below its run", async () => {
  const collector = await startCollector();
  const traces = { enabled: true, endpoint: collector.url };
  const stage = await openStage({ config: { telemetry: { traces } } });
  await stage.say("tool");
  const send = { sessionKey: "agent:other:main", message: "hello", timeoutSeconds: 30 };
  await stage.say(`mcp sessions_send ${JSON.stringify(send)}`);
  await stage.stop();
  const [first, second = []] = collector.trees();
  expect(first).toEqual(["invoke_agent main", "  execute_tool read"]);
  expect(second).toContain("  invoke_agent other (round1)");
  expect(JSON.stringify(collector.spans)).not.toContain("forty-two");
});
