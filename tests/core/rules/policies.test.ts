import fc from "fast-check";
import { expect } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import { decideSend } from "../../../src/core/rules/send-policy.ts";
import { decideTool, type PlacedFilter } from "../../../src/core/rules/tool-policy.ts";
import { chatTypeOf } from "../../../src/core/shapes/session-key.ts";
import type { ChatType, SendPolicySettings, SendRule } from "../../../src/core/shapes/settings/settings.ts";
import { rounds, both as test } from "../../kit/deep.ts";

const CHANNELS = ["telegram", "discord", "webchat"];
const TYPES: ChatType[] = ["direct", "group", "room", "thread"];

const rule: fc.Arbitrary<SendRule> = fc
  .record({
    channel: fc.option(fc.constantFrom(...CHANNELS), { nil: undefined }),
    chatType: fc.option(fc.constantFrom(...TYPES), { nil: undefined }),
    keyPrefix: fc.option(fc.constantFrom("agent:", "AGENT:a:", "cron:", "agent:b:main"), { nil: undefined }),
    action: fc.constantFrom("allow" as const, "deny" as const),
  })
  .map(({ channel, chatType, keyPrefix, action }) => ({
    action,
    match: {
      ...optional({ channel, chatType, keyPrefix }),
    },
  }));
const policy: fc.Arbitrary<SendPolicySettings> = fc.record({
  rules: fc.array(rule, { maxLength: 6 }),
  default: fc.constantFrom("allow" as const, "deny" as const),
});
const question = fc.record({
  channel: fc.constantFrom(...CHANNELS),
  chatTypes: fc.subarray(TYPES),
  keys: fc.subarray(["agent:a:main", "agent:b:main", "cron:daily"]),
});

type Question = { channel: string; chatTypes: readonly ChatType[]; keys: readonly string[] };

const hasPrefix = ({ match: { keyPrefix } }: SendRule, { keys }: Question): boolean =>
  keyPrefix === undefined || keys.some((key) => key.indexOf(keyPrefix.toLowerCase()) === 0);

const fits = (given: SendRule, asked: Question): boolean =>
  hasPrefix(given, asked) &&
  (given.match.channel === undefined || given.match.channel === asked.channel) &&
  (given.match.chatType === undefined || asked.chatTypes.includes(given.match.chatType));

test("SP2: in any order of rules, a matching deny wins over a matching allow, which wins over the default", () => {
  fc.assert(
    fc.property(policy, question, (given, asked) => {
      const matching = given.rules.filter((one) => fits(one, asked));
      const expected = matching.some(({ action }) => action === "deny")
        ? false
        : matching.length > 0 || given.default === "allow";
      expect(decideSend(asked, given).allowed).toBe(expected);
      expect(decideSend(asked, { ...given, rules: given.rules.toReversed() }).allowed).toBe(expected);
    }),
    { numRuns: rounds(400, 2000) },
  );
});

test("SP1: a session's own setting takes precedence over every rule", () => {
  fc.assert(
    fc.property(policy, question, (given, asked) => {
      expect(decideSend({ ...asked, override: "allow" }, given).allowed).toBe(true);
      expect(decideSend({ ...asked, override: "deny" }, given).allowed).toBe(false);
    }),
  );
});

test("SP2: every refusal has the same sentence and names the setting that decided", () => {
  fc.assert(
    fc.property(policy, question, fc.constantFrom(undefined, "deny" as const), (given, asked, override) => {
      const verdict = decideSend({ ...asked, override }, given);
      if (verdict.allowed) return;
      expect(verdict.error).toContain("send blocked by session policy");
      expect(verdict.error).toMatch(/sendPolicy/);
    }),
  );
  const rules: SendRule[] = [
    { match: {}, action: "allow" },
    { match: { channel: "discord", chatType: "room" }, action: "deny" },
  ];
  const asked = { channel: "Discord", chatTypes: ["room"] as const, keys: [] };
  expect(decideSend(asked, { rules, default: "allow" })).toEqual({
    allowed: false,
    error:
      'send blocked by session policy: session.sendPolicy.rules[1] denies channel "discord", chatType "room"',
  });
});

test("SP2: a thread matches rules for threads and rules for its parent's type", () => {
  const deny = (chatType: ChatType): SendPolicySettings => ({
    rules: [{ match: { chatType }, action: "deny" }],
    default: "allow",
  });
  const denied = (key: string): ChatType[] =>
    TYPES.filter(
      (type) =>
        !decideSend({ channel: "discord", chatTypes: chatTypeOf(key), keys: [key] }, deny(type)).allowed,
    );
  expect(denied("agent:a:discord:channel:1:thread:2")).toEqual(["room", "thread"]);
  expect(denied("agent:a:telegram:group:1:topic:2")).toEqual(["group", "thread"]);
  expect(denied("agent:a:discord:channel:1")).toEqual(["room"]);
  expect(denied("agent:a:main")).toEqual(["direct"]);
  expect(denied("cron:x")).toEqual([]);
});

test("the refusal of a tool names the setting that refuses it", () => {
  const at = (where: string, allow: string[], deny: string[]): PlacedFilter[] => [
    { where, filter: { allow, deny } },
  ];
  expect(decideTool("exec", at("tools", ["*"], ["ex*"]))).toEqual({
    allowed: false,
    error: 'tool "exec" is denied: tools.deny has "ex*"',
  });
  expect(decideTool("exec", [])).toEqual({ allowed: true, reason: "no filter denies it" });
  expect(
    decideTool("exec", [...at("tools", ["ex*"], []), ...at("agents.list[ops].tools", ["exec"], ["read"])]),
  ).toEqual({
    allowed: true,
    reason: "tools.allow and agents.list[ops].tools.allow list it, and no filter denies it",
  });
  expect(decideTool("exec", at("agents.list[ops].tools", ["read"], []))).toEqual({
    allowed: false,
    error: 'tool "exec" is not allowed: agents.list[ops].tools.allow is set and does not list it',
  });
});
