// Reads the command that a permission request is about.

import { expect, test } from "vitest";
import { askedCommand } from "../../../src/core/shapes/permission.ts";

test.each([
  [
    { title: "make", kind: "exec", detail: "folder: /project; reason: tools.exec.approval is always" },
    { command: "make", folder: "/project" },
  ],
  [{ title: "rm x", kind: "exec", detail: 'folder: /project; reason: "rm" deletes; see rm' }, undefined],
  [
    { title: "rm x", kind: "exec", detail: 'folder: "/a; b"; reason: rm: deletes files' },
    { command: "rm x", folder: "/a; b", reason: "rm: deletes files" },
  ],
  [
    { title: "cut …", kind: "exec", detail: 'command: "a\\n; b"; folder: /w; reason: the command has "x"' },
    { command: "a\n; b", folder: "/w", reason: 'the command has "x"' },
  ],
  [
    { title: '"my tool" x', kind: "exec", detail: 'folder: /project; reason: "my tool" is not on the list' },
    { command: '"my tool" x', folder: "/project", reason: '"my tool" is not on the list' },
  ],
  [
    { title: "cut …", kind: "exec", detail: 'command: "my tool"; folder: /w; reason: "' },
    { command: '"my tool"', folder: "/w", reason: '"' },
  ],
  [{ title: "make", kind: "exec", detail: "folder: /project; surprise: yes" }, undefined],
  [{ title: "make", kind: "exec" }, undefined],
  [{ title: "Write a.txt", kind: "edit", detail: "folder: /project; reason: x" }, undefined],
])("the command of %o is %o", (question, command) => {
  expect(askedCommand(question)).toEqual(command);
});
