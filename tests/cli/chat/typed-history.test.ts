// The file of typed texts.

import { appendFileSync, chmodSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TypedHistory } from "../../../src/cli/chat/typed-history.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";

function makeHistory() {
  const home = temporaryFolder(tmpdir());
  return { history: new TypedHistory(home), file: join(home, ".parley", "chat-history.jsonl"), home };
}

test("keeps the newest 500 texts, and the texts of another chat", () => {
  const { history, file, home } = makeHistory();
  history.add("text 0\nline 2");
  for (let at = 1; at < 500; at++) appendFileSync(file, `"text ${at}"\n`);
  new TypedHistory(home).add("text 500\nline 2");
  const texts = history.read();
  expect([texts.length, texts[0], texts.at(-1)]).toEqual([500, "text 1", "text 500\nline 2"]);
  history.add("x".repeat(10_001));
  expect(history.read().at(-1)).toBe("text 500\nline 2");
});

test("skips damaged lines, escapes control characters, and closes a file that others can read", () => {
  const { history, file } = makeHistory();
  expect(history.read()).toEqual([]);
  history.add("first");
  appendFileSync(file, 'broken\n{"a": 1}\n"\\u001b[2J"\n');
  chmodSync(file, 0o644);
  expect(history.read()).toEqual(["first", "\\x1b[2J"]);
  history.add("second");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(history.read()).toEqual(["first", "\\x1b[2J", "second"]);
});
