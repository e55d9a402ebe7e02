// Every hint of the command line names an existing command.

import { expect, test } from "vitest";
import { inCommands } from "../../src/cli/command-words.ts";
import { makeHome, run, runJson, startGateway } from "./kit.ts";

test.each([
  ["sessions_list shows the keys that you can use.", '"parley sessions" shows the keys that you can use.'],
  ["cron.list shows all jobs.", '"parley cron" shows all jobs.'],
  ['"sessions_list" and `sessions_send`', '"parley sessions" and "parley send"'],
  ["sessions.reset starts a new transcript.", '"parley sessions reset" starts a new transcript.'],
])("tools and methods in the hint and the message %j are replaced by commands", (hint, told) => {
  const trouble = { code: "invalid_session_key", error: `no key. ${hint}`, hint };
  expect(inCommands(trouble)).toEqual({ ...trouble, error: `no key. ${told}`, hint: told });
});

test("a hint about tools keeps the names of the tools", () => {
  const trouble = { code: "tool_denied", error: "denied", hint: "You have: sessions_list." };
  expect(inCommands(trouble)).toEqual(trouble);
});

test("the error of a refused command names commands instead of tools, in text and in JSON", async () => {
  const { home } = await makeHome({});
  await startGateway(home);
  const args = ["sessions", "history", "agent::x"];
  const { code, err } = await run(home, args);
  expect(code).toBe(1);
  expect(err).toContain('"parley sessions" shows');
  expect(err).not.toContain("sessions_list");
  expect(JSON.stringify(await runJson(home, args))).not.toContain("sessions_list");
});
