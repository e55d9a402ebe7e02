// Every hint of the command line names an existing command.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inCommands } from "../../src/cli/command-words.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { makeHome, run, runJson, startGateway } from "./kit.ts";

test.each([
  [
    "sessions_list shows the keys that you can use.",
    '"npx parley-gateway sessions" shows the keys that you can use.',
  ],
  ['"sessions_list" and `sessions_send`', '"npx parley-gateway sessions" and "npx parley-gateway send"'],
  ["deliveries.list shows all texts.", '"npx parley-gateway deliveries" shows all texts.'],
  ["sessions.reset starts a new transcript.", '"npx parley-gateway sessions reset" starts a new transcript.'],
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
  expect(err).toContain('"npx parley-gateway sessions" shows');
  expect(err).not.toContain("sessions_list");
  expect(JSON.stringify(await runJson(home, args))).not.toContain("sessions_list");
});

test("every text that names a command names one that works in a checkout, in a folder and anywhere", async () => {
  const { out } = await run(temporaryFolder(), ["--help"]);
  const commands = [...out.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name);
  // The names of commands in comments, in the marks of written files, and in scripts for a shell may be short.
  const isText = (line: string) => !/^\s*(\/\/|\/?\*)|Written by parley|\(\?:parley|parley run: 4/.test(line);
  const short = new RegExp(`(?<![-/\\w.])parley (${commands.join("|")})\\b`);
  const files = [...globSync("src/**/*.ts"), ...globSync("ui/src/**/*.{ts,tsx}")];
  const found = files
    .filter((file) => file !== join("src", "cli", "completion.ts"))
    .flatMap((file) =>
      readFileSync(file, "utf8")
        .split("\n")
        .filter(isText)
        .filter((line) => short.test(line)),
    );
  expect(commands.length).toBeGreaterThan(20);
  expect(found).toEqual([]);
});
