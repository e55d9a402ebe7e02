// The rules about instruction files: the text that counts, and the content that is outside.

import { expect, test } from "vitest";
import { isOutsider, outsideInput, webSource, writesIn } from "../../src/core/rules/labels/sources.ts";
import { countedText } from "../../src/core/rules/prompt/confirmed.ts";
import { settingsWith } from "../tools/app.ts";

test.each([
  ["new", undefined, false, "new", false],
  ["new", "old", false, "new", false],
  ["old", "old", true, "old", false],
  ["new", "old", true, "old", true],
  ["new", undefined, true, undefined, true],
  [undefined, "old", true, "old", true],
  [undefined, "old", false, undefined, false],
  [undefined, undefined, true, undefined, false],
])(
  "CF1, CF2: now %j, confirmed %j, guarded %j: %j counts, and it waits: %j",
  (current, confirmed, guarded, text, waits) => {
    expect(countedText({ current, confirmed, guarded })).toEqual({ text, waits });
  },
);

test.each([
  [{}, undefined],
  [{ sender: "telegram:7" }, undefined],
  [{ guest: true, sender: "telegram:7" }, "guest telegram:7"],
  [{ guest: true, provenance: { kind: "hook", source: "github" } as const }, "hook github"],
  [{ guest: true, provenance: { kind: "node" } as const }, "node"],
  [{ guest: true }, "guest agent:main:main"],
  [{ outside: "guest telegram:8", sender: "telegram:8" }, "guest telegram:8"],
])("the input %j has the source %j", (input, source) => {
  expect(outsideInput({ text: "x", ...input }, "agent:main:main")).toBe(source);
});

test.each([
  ["https://tea.example/a?b=secret", "web tea.example"],
  ["not an address", "web ?"],
])("the page at %j has the source %j", (address, source) => {
  expect(webSource(address)).toBe(source);
});

test.each([
  ["write", false, "workspace"],
  ["edit", true, "workspace"],
  ["exec", true, "workspace"],
  ["exec", false, "anywhere"],
  ["nodes", true, "anywhere"],
  ["mcp__files__write", true, "anywhere"],
  ["read", false, "nowhere"],
])("%s, contained %j, writes in: %s", (tool, contained, where) => {
  expect(writesIn(tool, contained)).toBe(where);
});

test.each([
  [true, false, ["telegram:1"], false],
  [false, true, [], false],
  [false, true, ["telegram:1"], true],
  [false, false, [], true],
])(
  "somebody (owner: %j, in a direct chat: %j, owners %j) is outside: %j",
  (isOwner, isDirect, owners, expected) => {
    expect(isOutsider({ ...settingsWith(), owners }, { isOwner, isDirect })).toBe(expected);
  },
);
