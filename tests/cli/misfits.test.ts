// Tests the command line in unusual situations: removed agents, missing programs, another server on the port,
// a gateway that stops.

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cleanup } from "../kit/engine/engine.ts";
import { homeWith, startProcess } from "../kit/process/gateway-process.ts";
import { configFile, makeHome, run, runJson, startGateway, TOKEN } from "./kit.ts";

interface Finding {
  readonly name: string;
  readonly level: string;
  readonly text: string;
}

async function doctor(home: string, name: string): Promise<Finding[]> {
  const { out } = await run(home, ["--json", "doctor"]);
  return (JSON.parse(out) as { findings: Finding[] }).findings.filter((one) => one.name === name);
}

test("a scheduled job of a removed agent is reported at the start and in cron list", async () => {
  const { home, port } = await makeHome();
  const first = await startGateway(home);
  expect(first.warnings).toEqual([]);
  const { job } = (await runJson(home, [
    ...["cron", "add", "report", "--every", "1h", "--name", "nightly", "--agent", "research"],
  ])) as { job: { id: string } };
  await run(home, ["cron", "add", "other", "--every", "1h", "--name", "daily"]);
  expect((await run(home, ["cron", "list"])).err).toBe("");
  await first.stop();

  const config = { gateway: { port, auth: { token: TOKEN } }, logging: { level: "debug" } };
  writeFileSync(configFile(home), JSON.stringify(config));
  const second = await startGateway(home);
  const missing = 'agent "research" is no longer configured (agents.list)';
  expect(second.warnings).toEqual([
    `the scheduled job "nightly" fails: ${missing}; see npx parley-gateway cron list`,
  ]);
  const listed = await run(home, ["cron", "list"]);
  expect(listed.err).toContain(`each turn of "nightly" fails: ${missing}`);
  expect(listed.err).toContain(`npx parley-gateway cron remove ${job.id}`);
  expect(listed.err).not.toContain("daily");
  expect((await runJson(home, ["cron", "list"])).jobs).toMatchObject([
    { problem: missing },
    { name: "daily" },
  ]);
});

test("doctor looks for ACP programs in the PATH of the agent's runs, and reports a missing one", async () => {
  const { home } = await makeHome();
  const tool = join(home, "my-agent");
  const acp = (id: string, command: string, env = {}) => ({
    id,
    runtime: { type: "acp", command: [command], env },
  });
  writeFileSync(
    configFile(home),
    JSON.stringify({
      agents: {
        list: [
          { id: "main" },
          acp("gone", "no-such-program-anywhere"),
          acp("shell", "sh"),
          acp("elsewhere", "sh", { PATH: "/nonexistent" }),
          acp("whole", tool),
          acp("plain", configFile(home)),
        ],
      },
    }),
  );
  writeFileSync(tool, "#!/bin/sh\n", { mode: 0o755 });
  const found = await doctor(home, "programs");
  expect(found.map(({ level, text }) => `${level} ${text.split(":")[0]}`)).toEqual([
    "problem agent gone",
    "ok agent shell",
    "problem agent elsewhere",
    "ok agent whole",
    "problem agent plain",
  ]);
  expect(found[0]?.text).toContain('program "no-such-program-anywhere" not found');
});

test('an agent with runtime.type "subagent" runs on the built-in runtime', async () => {
  const { home } = await makeHome({ agents: { list: [{ id: "main", runtime: { type: "subagent" } }] } });
  await startGateway(home);
  const { out } = await run(home, ["send", "--session", "main", "--wait", "20", "say hello"]);
  expect(out).toBe("hello\n");
});

test("parley link reports that another program uses the port, and sends it no token", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(JSON.stringify([request.url, request.headers]));
    response.end("<h1>hello</h1>");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const at = ["--url", `127.0.0.1:${port}`, "--token", TOKEN];
  const { code, out, err } = await run(homeWith({}), [...at, "link"]);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain(`Another program, not a gateway, answers at http://127.0.0.1:${port}`);
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.join()).not.toContain(TOKEN);
});

test("if parley send --wait loses the connection, it prints the run id and the command that shows the run", async () => {
  const { home } = await makeHome();
  const gateway = await startProcess({ home });
  const waiting = run(home, ["send", "--session", "main", "--wait", "30", "wait 20 seconds"]);
  const client = await gateway.connect();
  const state = async () => {
    const { sessions } = await client.request("sessions.list", {});
    return sessions.find(({ key }) => key === "agent:main:main")?.state;
  };
  await expect.poll(state).toBe("running");
  // The run is visible before its sender gets an answer. One more request lets that answer be sent first.
  await state();
  await gateway.end("SIGKILL");
  const { code, out, err } = await waiting;
  expect({ code, out }).toEqual({ code: 3, out: "" });
  expect(err).toMatch(/The message was accepted as run [0-9a-f-]{36}, which continues/);
  expect(err).toContain("Do not send it again. Follow it with: npx parley-gateway sessions history main");
});
