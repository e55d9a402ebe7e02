// The messages that a run reads between two of its steps.

import { expect, test } from "vitest";
import { takesOver } from "../../../src/core/rules/queue-mode.ts";
import type { Run } from "../../../src/core/shapes/run.ts";

const run = (input: Partial<Run["input"]>): Run =>
  ({
    kind: "turn",
    sessionId: "s",
    route: { channel: "telegram", to: "7" },
    input: { text: "x", steer: true, ...input },
  }) as Run;

test.each([
  [{}, {}, true],
  [{}, { guest: true }, false],
  [{ guest: true }, { guest: true }, true],
  [{ guest: true }, {}, true],
])("ME3: a run with %j reads a message with %j: %s", (running, next, expected) => {
  expect(takesOver(run(running), run(next))).toBe(expected);
});
