import { expect, test } from "vitest";
import { makeHome, run, startGateway } from "../kit.ts";

test("after /new, sessions earlier lists the conversation before the reset, and history and export include it", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const send = (text: string) => run(home, ["send", "--session", "work", "--wait", "30", text]);
  await send("say marmalade");
  await send("/new");
  await send("say tea");
  const history = (...more: string[]) => run(home, ["sessions", "history", "work", ...more]);
  expect((await history()).out).not.toContain("marmalade");
  const list = await run(home, ["sessions", "earlier", "work"]);
  expect(list.out).toMatch(/NO.*SESSION ID/);
  expect(list.out).toMatch(/1 .* say marmalade/);
  const sessionId = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(list.out)?.[0] ?? "";
  for (const which of ["1", sessionId])
    expect((await history("--earlier", which)).out).toContain("agent: marmalade");
  const wrong = await history("--earlier", "7");
  expect(wrong).toMatchObject({
    code: 1,
    err: expect.stringContaining("no earlier conversation 7; this session has 1"),
  });

  const lines = (await run(home, ["sessions", "export", "work", "--earlier", "1"])).out.trim().split("\n");
  const messages = lines.map((line) => JSON.parse(line) as { role: string });
  expect(messages.map(({ role }) => role)).toEqual(expect.arrayContaining(["user", "assistant"]));
  const markdown = await run(home, ["sessions", "export", "work", "--format", "markdown"]);
  expect(markdown.out).toMatch(/## User, \d{4}-.*\n\nsay tea\n/);
  expect(markdown.out).not.toContain("marmalade");
});
