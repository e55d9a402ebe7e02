// Patterns, and decisions that depend on them: send policy and tools.

import fc from "fast-check";
import { decideSend } from "../../../src/core/rules/send-policy.ts";
import { decideTool, type PlacedFilter } from "../../../src/core/rules/tool-policy.ts";
import type { ChatType, SendRule } from "../../../src/core/shapes/settings/settings.ts";
import { matchesPattern } from "../../../src/core/text/pattern.ts";
import { nastyText } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";

interface PolicyInput {
  readonly pattern: string;
  readonly subject: string;
  readonly rules: readonly SendRule[];
  readonly fallback: "allow" | "deny";
  readonly channel: string;
  readonly chatTypes: readonly ChatType[];
  readonly filters: readonly PlacedFilter[];
  readonly tool: string;
}

/**
 * A second implementation of patterns. Its table says which beginnings of the pattern match which beginnings
 * of the text.
 */
function fits(pattern: string, text: string): boolean {
  let row = [true, ...Array.from({ length: text.length }, () => false)];
  for (const sign of pattern.split("")) {
    const next: boolean[] = [sign === "*" && row[0] === true];
    for (let at = 1; at <= text.length; at += 1) {
      const step =
        sign === "*"
          ? row[at] === true || next[at - 1] === true
          : row[at - 1] === true && text[at - 1] === sign;
      next.push(step);
    }
    row = next;
  }
  return row[text.length] === true;
}

const few = fc.string({ unit: fc.constantFrom("a", "b", "A", ".", "*", "*", "(", "+", "\\"), maxLength: 14 });
const pattern = fc.oneof({ weight: 6, arbitrary: few }, { weight: 2, arbitrary: nastyText(200) });
const subject = fc.oneof(
  { weight: 6, arbitrary: few.map((text) => text.replaceAll("*", "b")) },
  { weight: 2, arbitrary: nastyText(200) },
);
/**
 * Generates patterns with thousands of `*`, and texts that almost match. A matcher that backtracks would
 * never finish.
 */
const stars = fc.nat(20_000).map((count) => "a*".repeat(count));
const chatType = fc.constantFrom<ChatType>("direct", "group", "room", "thread");
const rule = fc.record({
  match: fc.record({ channel: fc.oneof(few, nastyText(60)), chatType }, { requiredKeys: [] }),
  action: fc.constantFrom("allow" as const, "deny" as const),
}) as fc.Arbitrary<SendRule>;
const names = fc.array(fc.oneof(few, fc.constantFrom("*", "exec", "sessions_*", "EXEC", "read")), {
  maxLength: 3,
});
const filter = fc.record({
  where: fc.constantFrom("tools", "x.tools"),
  filter: fc.record({ allow: names, deny: names }),
});

/** Returns true if a list contains a name. Ignores upper and lower case, as both policies do. */
const named = (list: readonly string[], name: string): boolean =>
  list.some((one) => fits(one.toLowerCase(), name.toLowerCase()));

function checkSend({ rules, fallback, channel, chatTypes }: PolicyInput): void {
  const matching = rules.filter(
    ({ match }) =>
      (match.channel === undefined || named([match.channel], channel)) &&
      (match.chatType === undefined || chatTypes.includes(match.chatType)),
  );
  const expected = matching.some(({ action }) => action === "deny")
    ? false
    : matching.length > 0 || fallback === "allow";
  const verdict = decideSend({ channel, chatTypes, keys: [] }, { rules, default: fallback });
  must(verdict.allowed === expected, `a send is ${verdict.allowed ? "allowed" : "denied"} against the rules`);
  if (!verdict.allowed) must(verdict.error.includes("sendPolicy"), "a refusal names the setting");
}

function checkTool({ filters, tool }: PolicyInput): void {
  const denied = filters.some(({ filter: { deny } }) => named(deny, tool));
  const listed = filters.every(({ filter: { allow } }) => allow.length === 0 || named(allow, tool));
  const verdict = decideTool(tool, filters);
  must(verdict.allowed === (!denied && listed), `the tool ${shown(tool)} is decided against the filters`);
}

export const policies: FuzzTarget<PolicyInput> = {
  name: "policies",
  proves: "a pattern fits what it says and never searches back and forth; a deny always wins",
  inputs: fc.record({
    pattern: fc.oneof({ weight: 30, arbitrary: pattern }, { weight: 1, arbitrary: stars }),
    subject: fc.oneof(
      { weight: 30, arbitrary: subject },
      { weight: 1, arbitrary: fc.nat(200_000).map((count) => "a".repeat(count)) },
    ),
    rules: fc.array(rule, { maxLength: 5 }),
    fallback: fc.constantFrom("allow" as const, "deny" as const),
    channel: fc.oneof(few, nastyText(60)),
    chatTypes: fc.subarray<ChatType>(["direct", "group", "room", "thread"]),
    filters: fc.array(filter, { maxLength: 3 }),
    tool: fc.oneof(fc.constantFrom("exec", "read", "sessions_send"), few),
  }),
  roundRuns: 3_000,
  ciRuns: 6_000,
  open: () => ({
    check(input) {
      const given = matchesPattern(input.pattern, input.subject);
      // Limits the size of the table; longer inputs are only checked for time.
      if (input.pattern.length * input.subject.length < 100_000) {
        must(
          given === fits(input.pattern, input.subject),
          `${shown(input.pattern)} and ${shown(input.subject)}`,
        );
      }
      checkSend(input);
      checkTool(input);
    },
  }),
};
