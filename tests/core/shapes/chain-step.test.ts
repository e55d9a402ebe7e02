import { expect, test } from "vitest";
import { keysInError, visibleErrorText } from "../../../src/core/shapes/chain-step.ts";

const OWN = "agent:main:main";
const OTHER = "agent:writer:main";
const PEER = "peer:lab/agent:writer:main";

test.each([
  `session "${OWN}" is archived`,
  `(${OWN}), then: ${OWN}; and ${OWN}.`,
  `{"sessionKey":"${OWN}"}`,
  `${OWN}: no reply`,
])("I9: punctuation behind a session key in an error is no part of the key: %s", (text) => {
  expect(new Set(keysInError(text))).toEqual(new Set([OWN]));
  expect(visibleErrorText(text, (key) => key === OWN)).toBe(text);
  expect(visibleErrorText(text, () => false)).toBe(text.replaceAll(OWN, "(not visible)"));
});

test("I9: the key of a peer's session in an error is one key", () => {
  const text = `${PEER} waits for ${OTHER},${PEER}`;
  expect(keysInError(text)).toEqual([PEER, OTHER, PEER]);
  expect(visibleErrorText(text, (key) => key === OTHER)).toBe(
    `(not visible) waits for ${OTHER},(not visible)`,
  );
});
