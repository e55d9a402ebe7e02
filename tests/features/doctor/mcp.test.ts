// Outside MCP servers: the doctor's findings, and the death of the gateway.

import { expect } from "vitest";
import { run } from "../../cli/kit.ts";
import { test } from "../../kit/deep.ts";
import { freePort } from "../../kit/loopback.ts";
import { homeWith, startProcess } from "../../kit/process/gateway-process.ts";
import { openWitness, REFERENCE } from "../../tools/mcp-kit.ts";
import { PROGRAM } from "../../tools/mcp-program.ts";

const node = (args: readonly string[], more: object = {}) => ({ command: process.execPath, args, ...more });
const hello = [{ name: "hello", inputSchema: { type: "object" } }];

interface Finding {
  readonly name: string;
  readonly level: string;
  readonly text: string;
  readonly mend?: string;
}

test("doctor starts each MCP server once and reports its tools or its error", async () => {
  const witness = await openWitness();
  const lastWords = "the key sesame-open-7788 is refused";
  const servers = {
    reference: node([REFERENCE, "stdio"], { agents: ["main"] }),
    broken: node([PROGRAM, JSON.stringify({ witness: witness.port, lastWords })], {
      env: { SERVICE: "sesame-open-7788" },
    }),
    typo: { command: "parley-no-such-program" },
    nowhere: { url: `http://127.0.0.1:${await freePort()}/mcp` },
    off: { command: "parley-no-such-program", enabled: false },
  };
  const home = homeWith({
    gateway: { port: await freePort(), auth: { token: "a-token-that-is-long-enough" } },
    tools: { mcp: { servers } },
  });
  const { code, out } = await run(home, ["--json", "doctor"]);
  const found = (JSON.parse(out) as { findings: Finding[] }).findings.filter(({ name }) => name === "mcp");
  expect(found.map(({ level }) => level)).toEqual(["ok", "problem", "problem", "problem"]);
  const [reference, broken, typo, nowhere] = found;
  expect(reference?.text).toMatch(/^reference, for main: 17 tools; left out: simulate-research-query/);
  expect(broken?.text).toContain("it said: the key [redacted] is refused");
  expect(broken?.mend).toContain("tools.mcp.servers.broken");
  expect(typo?.text).toContain("there is no program parley-no-such-program");
  expect(nowhere?.text).toContain("ECONNREFUSED");
  expect(out).not.toContain("sesame");
  expect(code).toBe(1);
});

test.deep("if the gateway is killed, an MCP server exits because its input ends", async () => {
  const witness = await openWitness();
  const servers = { bad: node([PROGRAM, JSON.stringify({ witness: witness.port, tools: hello })]) };
  const gateway = await startProcess({ config: { tools: { mcp: { servers } } } });
  const client = await gateway.connect();
  const result = await client.call("tools.invoke", { name: "mcp__bad__hello" });
  expect(result).toMatchObject({ status: "ok" });
  const life = await witness.life(0);
  await client.close();
  await gateway.end("SIGKILL");
  await life.dead;
  expect(life.events).toContain("end of input");
});
