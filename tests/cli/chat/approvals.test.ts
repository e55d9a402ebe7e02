// Permission requests in the chat, without a gateway: which are shown, and which typed texts answer them.

import { expect, test } from "vitest";
import { Approvals } from "../../../src/cli/chat/approvals.ts";
import type { Link } from "../../../src/cli/gateway-link.ts";

const MAIN = "agent:main:main";
const CHILD = "agent:main:subagent:1";
const GRANDCHILD = "agent:main:subagent:2";
const STRANGER = "agent:ops:main";
const PARENTS: Readonly<Record<string, string>> = { [GRANDCHILD]: CHILD, [CHILD]: MAIN };

function makeApprovals(...from: string[]) {
  const answered: unknown[] = [];
  const permissions = from.map((sessionKey, at) => ({ id: `id-${at}`, sessionKey, title: "rm -r build" }));
  let refuses = false;
  const refuse = (is: boolean): void => {
    refuses = is;
  };
  const request = async (method: string, params: { keys?: readonly string[] }) => {
    if (method === "permissions.list") return { ok: true, value: { permissions } };
    if (method === "permissions.answer") return { ok: true, value: answered.push(params) };
    if (refuses) return { ok: false, code: "unavailable", error: "away" };
    return { ok: true, value: { sessions: [{ spawnedBy: PARENTS[params.keys?.[0] ?? ""] }] } };
  };
  return { approvals: new Approvals({ request } as unknown as Link, MAIN), answered, permissions, refuse };
}

test("AP1: shows one request at a time, of the session and of those it spawned, and no other is answered", async () => {
  const { approvals, answered, permissions } = makeApprovals(STRANGER, GRANDCHILD, MAIN);
  expect(await approvals.read(1_000)).toMatchObject({ sessionKey: GRANDCHILD });
  expect(await approvals.read(2_000)).toBeUndefined();
  // The page answers the first request while the user types.
  permissions.splice(1, 1);
  expect(await approvals.read(3_000)).toMatchObject({ sessionKey: MAIN });
  expect(approvals.answerOf({ text: "y", begunAt: 2_999 })).toBeUndefined();
  expect(approvals.answerOf({ text: "y", begunAt: 4_000 })).toEqual({ decision: "allow" });
  await approvals.answer({ decision: "allow" });
  expect(answered).toEqual([{ id: "id-2", decision: "allow" }]);
});

test("a request is shown later if the gateway did not answer at first", async () => {
  const { approvals, refuse } = makeApprovals(CHILD);
  refuse(true);
  expect(await approvals.read(1_000)).toBeUndefined();
  refuse(false);
  expect(await approvals.read(2_000)).toMatchObject({ sessionKey: CHILD });
});

test("AP1: an answer that was begun before the request was shown is a message for the agent", async () => {
  const { approvals, answered } = makeApprovals(CHILD);
  await approvals.read(1_000);
  expect(approvals.answerOf({ text: "y", begunAt: 999 })).toBeUndefined();
  expect(approvals.answerOf({ text: "yes, please", begunAt: 1_001 })).toBeUndefined();
  expect(approvals.answerOf({ text: "N", begunAt: 2_000 })).toEqual({ decision: "deny" });
  const allow = approvals.answerOf({ text: "y", begunAt: 2_000 });
  expect(allow).toEqual({ decision: "allow" });
  await approvals.answer({ decision: "allow" });
  expect(answered).toEqual([{ id: "id-0", decision: "allow" }]);
  expect(approvals.answerOf({ text: "y", begunAt: 2_001 })).toBeUndefined();
});

test("AP1: a second answer within a second answers no request that has just appeared", async () => {
  const { approvals, answered, permissions } = makeApprovals(CHILD, MAIN);
  await approvals.read(1_000);
  await approvals.answer({ decision: "allow" });
  permissions.shift();
  expect(await approvals.read(2_000)).toMatchObject({ sessionKey: MAIN });
  for (const text of ["y", "n"]) expect(approvals.answerOf({ text, begunAt: 2_999 })).toBe("hasty");
  expect(approvals.answerOf({ text: "go on", begunAt: 2_100 })).toBeUndefined();
  expect(answered).toHaveLength(1);
  expect(approvals.answerOf({ text: "y", begunAt: 3_000 })).toEqual({ decision: "allow" });
});
