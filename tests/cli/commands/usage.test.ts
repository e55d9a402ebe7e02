// `parley usage` with a real gateway, as a table and as JSON.

import { expect, test } from "vitest";
import { makeHome, run, runJson, startGateway } from "../kit.ts";

test("parley usage shows tokens and cost of each agent, and the daily budgets", async () => {
  // The budget suffices for a few runs only, because each model call first reserves its maximum.
  const budget = { dailyTokens: 6_000 };
  const list = [
    { id: "main", default: true },
    { id: "research", budget },
  ];
  const { home } = await makeHome({ agents: { list } });
  await startGateway(home);
  expect((await run(home, ["usage"])).out).toContain("(no usage in 30 days)");
  const nobody = await run(home, ["usage", "--agent", "nobody"]);
  expect(nobody).toMatchObject({ code: 0, out: expect.stringContaining('no agent "nobody" is configured') });
  expect(nobody.out).toContain("agents: main, research");
  await run(home, ["send", "--session", "agent:main:main", "--wait", "20", "hello"]);
  await run(home, ["send", "--session", "agent:research:main", "--wait", "20", "hello"]);
  const { out } = await run(home, ["usage"]);
  expect(out).toMatch(/AGENT +RUNS +INPUT +CACHED +OUTPUT +TOKENS +USD/);
  expect(out).toMatch(/main +1 /);
  expect(out).toMatch(/all +2 /);
  expect((await run(home, ["usage", "--agent", "Main"])).out).toMatch(/main +1 /);
  expect(out).toMatch(/research today: [\d,]+ of 6,000 tokens/);
  const again = () => run(home, ["send", "--session", "agent:research:main", "--wait", "20", "again"]);
  let refused = await again();
  for (let runs = 0; refused.code === 0 && runs < 20; runs += 1) refused = await again();
  expect(refused.code).toBe(1);
  expect(refused.err).toContain("dailyTokens is 6000");
  const value = await runJson(home, ["usage", "--by", "tree", "--days", "1", "--agent", "main"]);
  expect(value).toMatchObject({
    by: "tree",
    lines: [{ name: "agent:main:main", runs: 1 }],
    truncated: false,
  });
});
