import { expect, test } from "vitest";
import { nearestName, nearestNames } from "../../../src/core/text/nearest.ts";

test("the error for a mistyped argument suggests the nearest valid name", () => {
  const names = ["sessionKey", "label", "agentId", "message", "timeoutSeconds"];
  expect(nearestName("session_key", names)).toBe("sessionKey");
  expect(nearestName("sesionKey", names)).toBe("sessionKey");
  expect(nearestName("key", names)).toBe("sessionKey");
  expect(nearestName("timeout", names)).toBe("timeoutSeconds");
  expect(nearestName("masage", names)).toBe("message");
  expect(nearestName("temperature", names)).toBeUndefined();
  expect(nearestName("", names)).toBeUndefined();
  expect(nearestName("x".repeat(100_000), names)).toBeUndefined();
});

test("a name with two swapped letters gets a suggestion, an unrelated word gets none", () => {
  expect(nearestName("lsit", ["list", "spawn", "send"])).toBe("list");
  expect(nearestName("to", ["id", "mode", "wait"])).toBeUndefined();
});

test("the closest keys are suggested first, including those with typos, in other case, or with only a part of the key", () => {
  const keys = ["agent:ops:main", "agent:research:main", "agent:research:telegram:group:-100", "cron:daily"];
  expect(nearestNames("agent:reserch:main", keys, 2)[0]).toBe("agent:research:main");
  expect(nearestNames("DAILY", keys, 1)).toEqual(["cron:daily"]);
  expect(nearestNames("telegram", keys, 1)).toEqual(["agent:research:telegram:group:-100"]);
  expect(nearestNames("x", keys, 10)).toHaveLength(4);
  expect(nearestNames("", keys, 0)).toEqual([]);
});
