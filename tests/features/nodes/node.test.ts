// Commands that a node accepts, valid device names, and programs that a node may run.

import { expect, test } from "vitest";
import { execPatternProblem, execRefusal } from "../../../src/features/nodes/exec-patterns.ts";
import { commandRefusal, nodeFacts, nodesNamed } from "../../../src/features/nodes/node.ts";

const settings = {
  enabled: true,
  allowCommands: ["exec", "device.*"],
  allowedSessionKeys: [],
  allowSandboxed: false,
};

test("ND2: a device's description becomes one short line, and invalid command names are removed", () => {
  const facts = nodeFacts({
    name: `\u001b[2J${"n".repeat(500)}\n`,
    platform: "  ",
    caps: undefined,
    commands: [
      "exec",
      "exec",
      "",
      "a b",
      "*",
      "../x",
      "device.info",
      "x".repeat(65),
      "9",
      "a..b",
      "__proto__",
    ],
  });
  expect(facts.name.startsWith("\\x1b[2Jnnn")).toBe(true);
  expect(facts.name.length).toBeLessThan(100);
  expect(facts).toMatchObject({
    platform: "unknown",
    version: "unknown",
    caps: [],
    commands: ["exec", "device.info"],
  });
  expect(nodeFacts({ commands: Array.from({ length: 10_000 }, (_, n) => `c${n}`) }).commands).toHaveLength(
    64,
  );
});

test("ND1: a command must be offered by the node and allowed in the settings", () => {
  const node = nodeFacts({ name: "attic", commands: ["exec", "device.info", "camera.snap"] });
  expect(commandRefusal(node, "exec", settings)).toBeUndefined();
  expect(commandRefusal(node, "device.info", settings)).toBeUndefined();
  expect(commandRefusal(node, "camera.snap", settings)).toContain("nodes.allowCommands");
  expect(commandRefusal(node, "device.battery", settings)).toContain("does not offer");
  expect(commandRefusal({ ...node, commands: [] }, "exec", settings)).toContain("offers nothing");
});

test("a node is found by its id, then by its name, then by a prefix of the id", () => {
  const all = [
    { node: { id: "aabbccdd", name: "one" } },
    { node: { id: "aabbccee", name: "two" } },
    { node: { id: "ffff0000", name: "aabbccdd" } },
    { node: { id: "ffff1111", name: "Two" } },
  ];
  const found = (wanted: string) => nodesNamed(wanted, all).map(({ node }) => node.id);
  expect(found("aabbccdd")).toEqual(["aabbccdd"]);
  expect(found(" ONE ")).toEqual(["aabbccdd"]);
  expect(found("two")).toEqual(["aabbccee", "ffff1111"]);
  expect(found("aabbcc")).toEqual(["aabbccdd", "aabbccee"]);
  expect(found("aabb")).toEqual([]);
  expect(found("")).toEqual([]);
});

test.each<[string, string[], boolean]>([
  ["git *", ["git", "status"], true],
  ["git *", ["git"], true],
  ["git *", ["git", "status", "; rm -rf /"], true],
  ["git *", ["gitk"], false],
  ["git *", ["/usr/bin/git"], false],
  ["git status", ["git", "status"], true],
  ["git status", ["git", "status", "-s"], false],
  ["git status", ["git status"], false],
  ["git", ["git", "push"], false],
  ["df -h *", ["df", "-h", "/"], true],
  ["df -h *", ["df", "/"], false],
  ["systemctl status *.service", ["systemctl", "status", "ssh.service"], true],
  ["systemctl status *.service", ["systemctl", "stop", "ssh.service"], false],
  ["/opt/tools/* *", ["/opt/tools/run", "x"], true],
  ["/opt/tools/* *", ["/opt/tools/../../bin/sh", "-c", "id"], false],
  ["/opt/tools/* *", ["/opt/tools//run"], false],
  ["/opt/tools/* *", ["/opt/tools/./run"], false],
  ["run*", ["run/../sh"], false],
  ["./run", ["./run"], false],
  ["git *", [""], false],
  ["git *", [".."], false],
])("NE1, NE2: patterns %j, program %j: %s", (pattern, argv, runs) => {
  expect(execRefusal([pattern], argv) === undefined).toBe(runs);
});

test("without a pattern no program is allowed, and a pattern must name the program", () => {
  expect(execRefusal([], ["git"])).toContain("it runs: nothing");
  for (const pattern of ["", "  ", "*", "* *", "/*", "./run", "../x *"]) {
    expect(execPatternProblem(pattern), pattern).toEqual(expect.any(String));
  }
  for (const pattern of ["git", "git *", "/opt/tools/* *", "apt-*"]) {
    expect(execPatternProblem(pattern), pattern).toBeUndefined();
  }
});
