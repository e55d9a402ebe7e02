// `parley inbox` and `parley runs` against a real gateway with the offline model.

import { expect, test } from "vitest";
import { makeHome, run, runJson, startGateway } from "./kit.ts";

test("`inbox` lists each group with the command that resolves its items, and `runs dismiss` removes a question", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const empty = await run(home, ["inbox"]);
  expect(empty).toMatchObject({ code: 0, out: "Needs you (0)\n" });
  await run(home, ["send", "--session", "agent:main:main", "--wait", "20", "say Shall I deploy?"]);
  const { out } = await run(home, ["inbox"]);
  expect(out).toMatch(/^Needs you \(1\)\n {2}agent:main:main {2}question, \d+ s\n {4}.*Shall I deploy\?\n/);
  const [, runId = ""] = /npx parley-gateway runs dismiss (\S+)/.exec(out) ?? [];
  const listed = await runJson(home, ["inbox", "--limit", "1"]);
  expect(listed).toMatchObject({ groups: [{ group: "needs_you", count: 1 }, {}, {}, {}, {}] });
  expect(await run(home, ["runs", "dismiss", runId])).toMatchObject({ code: 0, out: "Dismissed.\n" });
  expect((await run(home, ["runs", "dismiss", runId])).err).toContain("waits for a decision");
  const retried = await run(home, ["runs", "retry", "nothing"]);
  expect(retried.code).toBe(1);
  expect(retried.err).toContain("The open ones: npx parley-gateway inbox");
  expect((await run(home, ["inbox"])).out).toContain("Done (1)");
});

test("`inbox` shows the whole command of a permission request in one piece", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  await run(home, ["send", "--session", "main", "run: date > today.txt"]);
  await expect.poll(async () => (await run(home, ["inbox"])).out).toContain("\n    date > today.txt\n");
});

test("inbox refuses --joined and --hook without a session", async () => {
  const { home } = await makeHome();
  expect(await run(home, ["inbox", "--joined", "x"])).toMatchObject({ code: 2 });
  expect(await run(home, ["inbox", "--hook", "claude"])).toMatchObject({ code: 2 });
});
