import { expect, test } from "vitest";
import { hasPlainNames } from "../../../src/core/rules/approval/named-files.ts";

test.each([
  "npm test",
  "bash build.sh --out dist",
  'git commit -m "Mend the basket"',
  "node tools/run.js > result.txt",
  'pytest -k="slow and fast" tests',
])("all files that %j reads can be found, so it may be allowed for longer", (command) => {
  expect(hasPlainNames(command)).toBe(true);
});

test.each([
  "bash ~/x.sh",
  "bash $PWD/x.sh",
  "bash ${PWD}/x.sh",
  "bash x?.sh",
  "bash *.sh",
  "bash x\\ y.sh",
  'bash x.s"h"',
  'bash "x".sh',
  'bash "a>b.sh"',
  "bash `ls`",
  "bash {a,b}.sh",
])("bash makes other names of %j, so it is allowed once only", (command) => {
  expect(hasPlainNames(command)).toBe(false);
});
