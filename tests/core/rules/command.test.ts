// Recognition of commands in messages.

import { expect, test } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import { COMMANDS, parseCommand } from "../../../src/core/rules/command.ts";

const parse = (text: string, more: { fromMenu?: boolean; called?: string } = {}) =>
  parseCommand(text, {
    isOurs: (name) => name === more.called,
    ...optional({ fromMenu: more.fromMenu }),
  });

test("CM1: a one-line command is recognized in upper and lower case and with its arguments", () => {
  expect(parse("/stop")).toEqual({ command: "stop", args: "" });
  expect(parse("  /StOp \t ")).toEqual({ command: "stop", args: "" });
  expect(parse("/model   local/qwen3  ")).toEqual({ command: "model", args: "local/qwen3" });
  expect(parse("/send\toff")).toEqual({ command: "send", args: "off" });
  expect(parse("/subagents cancel all")).toEqual({ command: "subagents", args: "cancel all" });
});

test("CM1: a command inside a longer text, a quotation or a code block is not recognized", () => {
  const texts = [
    "please /stop",
    "/stop\nand then go on",
    "go on\n/stop",
    "/stop\u2028now",
    "/stop\u0085",
    "/stop\rnow",
    "> /stop",
    "`/stop`",
    "```\n/stop\n```",
    '"/stop"',
    "[Forwarded from X] /stop",
    "\u200b/stop",
    "/ stop",
    "//stop",
    "／stop",
    "/st\u200bop",
    "/stop/now",
    "/stop, please",
    `/model ${"x".repeat(400)}`,
    "/",
    "",
    "stop",
  ];
  for (const text of texts) expect([text, parse(text)]).toEqual([text, undefined]);
});

test("CM2: /name@bot is a command only for the bot of that name", () => {
  expect(parse("/stop@parley_bot", { called: "parley_bot" })).toEqual({ command: "stop", args: "" });
  expect(parse("/model@parley_bot x", { called: "parley_bot" })).toEqual({ command: "model", args: "x" });
  expect(parse("/stop@other_bot", { called: "parley_bot" })).toBeUndefined();
  expect(parse("/stop@", { called: "" })).toBeUndefined();
  expect(parse("/stop@a@b", { called: "a" })).toBeUndefined();
});

test("CM3: an unknown command goes to the agent as text, unless it was chosen from a platform's menu", () => {
  expect(parse("/frobnicate now")).toBeUndefined();
  expect(parse("/start")).toBeUndefined();
  expect(parse("/frobnicate now", { fromMenu: true })).toEqual({ command: "help", args: "frobnicate" });
  expect(parse("/stop", { fromMenu: true })).toEqual({ command: "stop", args: "" });
  for (const name of ["constructor", "__proto__", "toString"]) expect(parse(`/${name}`)).toBeUndefined();
});

test("every command fits into the command menus of the platforms", () => {
  const names = COMMANDS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const { name, description, usage } of COMMANDS) {
    expect(name).toMatch(/^[a-z]{1,32}$/);
    expect(description).toMatch(/^[^\n]{1,100}$/);
    expect(usage.startsWith(`/${name}`)).toBe(true);
  }
});

test("a long line of spaces or at-signs is parsed quickly", () => {
  for (const filler of [" ", "@", "/stop ", "a"]) {
    expect(parse(`/stop ${filler.repeat(1_000_000)}x`)).toBeUndefined();
  }
});
