// Parley keeps the rules of the protocol: towards editors as an agent, towards programs as their client.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { makeHome, startGateway } from "../../cli/kit.ts";
import { ACP_AGENT } from "../../kit/acp-agent.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { launch } from "../../kit/process/fleet.ts";
import { checkAgent } from "./conformance.ts";
import { openStage } from "./kit.ts";
import { AcpChecker } from "./schema.ts";

test("towards an editor, every message fits the protocol's schema, and every requirement is met", async () => {
  const { home } = await makeHome({ agents: { list: [{ id: "main" }] } });
  await startGateway(home);
  const outcomes = await checkAgent({
    start: () => {
      const child = launch(home, ["acp"]);
      cleanup(() => void child.kill("SIGKILL"));
      return child;
    },
    cwd: home,
    askingPrompt: "run: touch one",
  });
  expect(outcomes.filter(({ why }) => why !== undefined)).toEqual([]);
  expect(outcomes.length).toBeGreaterThan(30);
});

test.each([
  ["over standard streams", "test-agent"],
  ["over HTTP", "Copilot"],
])("towards a program with tools %s, every message fits the protocol's schema", async (_, name) => {
  const home = temporaryFolder();
  const file = join(home, "lines");
  const tap = fileURLToPath(new URL("tap.ts", import.meta.url));
  const command = [process.execPath, tap, file, ...ACP_AGENT];
  const options = {
    home,
    env: { ACP_NAME: name, ACP_LOAD: "1" },
    runtime: { command, permissions: "allow" },
  };
  const first = await openStage(options);
  expect(await first.say("ask")).toBe("I was told: yes");
  const hanging = await first.begin("hang");
  await first.logged("waiting");
  await first.client.call("chat.abort", { sessionKey: "main" });
  expect(await first.end(hanging)).toMatchObject({ runStatus: "aborted" });
  await expect.poll(() => readFileSync(file, "utf8")).toContain("session/cancel");
  await first.stop();
  const again = await openStage(options);
  expect(await again.say("say on")).toBe("on");
  const checker = new AcpChecker();
  const methods = new Set<unknown>();
  for (const entry of readFileSync(file, "utf8").split("\n").filter(Boolean)) {
    const { by, line } = JSON.parse(entry) as { by: "agent" | "client"; line: string };
    checker.check(by, line);
    if (by === "client") methods.add(JSON.parse(line).method);
  }
  expect(checker.problems).toEqual([]);
  const own = ["initialize", "session/new", "session/load", "session/prompt", "session/cancel"];
  expect([...methods]).toEqual(expect.arrayContaining(own));
});
