// The doctor's findings about agents elsewhere, with a real gateway that exposes one.

import { expect, test } from "vitest";
import { run } from "../../cli/kit.ts";
import { freePort } from "../../kit/loopback.ts";
import { homeWith, startProcess } from "../../kit/process/gateway-process.ts";

interface Finding {
  readonly name: string;
  readonly level: string;
  readonly text: string;
  readonly mend?: string;
}

test("doctor reads the card of each agent elsewhere, and names its key and what is wrong", async () => {
  const far = await startProcess({ config: { a2a: { expose: ["main"] } } });
  const { keys } = (await (await fetch(`${far.httpUrl}/a2a/jwks.json`)).json()) as {
    keys: { kid: string }[];
  };
  const key = keys[0]?.kid ?? "";
  const card = `${far.httpUrl}/a2a/main`;
  const nobody = `http://127.0.0.1:${await freePort()}/a2a/main`;
  const other = "x".repeat(43);
  const list = [
    { id: "main" },
    { id: "right", runtime: { type: "a2a", card, key, token: far.token } },
    { id: "wrong", runtime: { type: "a2a", card, key: other, token: far.token } },
    { id: "away", runtime: { type: "a2a", card: nobody, key } },
  ];
  const home = homeWith({
    gateway: { port: await freePort(), auth: { token: "a-token-that-is-long-enough" } },
    agents: { list },
  });
  const { code, out } = await run(home, ["--json", "doctor"]);
  const found = (JSON.parse(out) as { findings: Finding[] }).findings.filter(({ name }) => name === "a2a");
  expect(found.map(({ level }) => level)).toEqual(["ok", "problem", "problem"]);
  expect(found[0]?.text).toBe(`agent right: main: its card is signed by the key ${key}`);
  expect(found[1]?.text).toContain(`signed by the key ${key}, and runtime.key is ${other}`);
  expect(found[1]?.mend).toContain("agents.list[wrong].runtime");
  expect(found[2]?.text).toMatch(/cannot be reached \(ECONNREFUSED 127\.0\.0\.1:\d+\)/);
  expect(out).not.toContain(far.token);
  expect(code).toBe(1);
  const offline = await run(home, ["doctor", "--offline"]);
  expect(offline.out).toContain("agent right, agent wrong, agent away: not checked (--offline)");
});
