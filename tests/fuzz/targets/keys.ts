// Session keys from untrusted callers: only valid keys are accepted, and every accepted text gives one key.

import fc, { type Arbitrary } from "fast-check";
import {
  canonicalKey,
  displayKey,
  formatKey,
  type KeyRules,
  type ParsedKey,
  parseKey,
} from "../../../src/core/shapes/session-key.ts";
import { damagedText } from "../mutate.ts";
import { nastyText } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";

interface KeyInput {
  readonly text: string;
  /** The agent that uses the key. */
  readonly caller: string;
  readonly mainKey: string;
  readonly scope: "per-sender" | "global";
  /** A change of the text that does not change its meaning. */
  readonly spelling: "caseOfWords" | "escapes" | "spaces" | "none";
  /** A key that is formatted from parts, with ids of platforms. */
  readonly parsed: ParsedKey;
}

const agentId = fc.oneof(
  fc.constantFrom("main", "research", "a", "-", "global"),
  fc.stringMatching(/^[a-z0-9_-]{1,64}$/),
);
const channel = fc.constantFrom("telegram", "discord", "my-plugin_2", "x");
const id = nastyText(600).filter((text) => text !== "");
const thread = fc.record({ kind: fc.constantFrom("thread" as const, "topic" as const), id });

const TAKEN = /^(global|unknown|agent|cron|hook|node|chat|subagent|mcp|acp|openai)$/i;
/** Names with a prefix. No other form of key begins with this prefix. */
const name = fc
  .array(id, { minLength: 1, maxLength: 3 })
  .filter(([first = "", second = ""]) => !TAKEN.test(first) && !/^(group|channel|dm)$/i.test(second));

const parsedKey: Arbitrary<ParsedKey> = fc.oneof(
  fc.record({ form: fc.constant("named" as const), agentId, name }),
  fc.record(
    { form: fc.constantFrom("group" as const, "channel" as const), agentId, channel, id, thread },
    { requiredKeys: ["form", "agentId", "channel", "id"] },
  ) as Arbitrary<ParsedKey>,
  fc.record({ form: fc.constant("dm" as const), agentId, channel, peer: id }),
  fc.record({ form: fc.constantFrom("chat" as const, "subagent" as const), agentId, id }),
  fc.record({
    form: fc.constant("external" as const),
    agentId,
    client: fc.constantFrom("mcp" as const, "acp" as const, "openai" as const),
    id,
  }),
  fc.record({ form: fc.constant("cron" as const), id }),
  fc.record({
    form: fc.constantFrom("hook" as const, "node" as const),
    name: fc.array(id, { minLength: 1, maxLength: 3 }),
  }),
);

const WORDS = [
  ..."agent AGENT main Main telegram group channel thread topic dm chat subagent mcp cron hook node node-x".split(
    " ",
  ),
  ..."global GLOBAL unknown %41 %3a %3A %C3%A9 %c3 %ud800 %uD83D%uDE00 % research".split(" "),
  "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11",
  "\u212a", // The sign for Kelvin: its lower case is a plain k.
];
const joined = fc.array(fc.oneof(fc.constantFrom(...WORDS), id), { minLength: 1, maxLength: 8 });
const text = fc.oneof(
  { weight: 3, arbitrary: damagedText(parsedKey.map(formatKey)) },
  { weight: 3, arbitrary: joined.map((words) => words.join(":")) },
  { weight: 1, arbitrary: nastyText(3_000) },
);

/**
 * Characters that a key must not contain: invisible ones, and those that change the reading direction. The
 * list is independent of src and uses Unicode's properties.
 */
const NEVER_IN_KEYS =
  /[\s\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Join_Control}]|[\u00ad\u200b\u2060\ufeff]/u;

/** Escapes an ordinary letter or digit of the last part, which does not change the id. */
function withEscapes(key: string): string {
  const at = key.lastIndexOf(":") + 1;
  const letter = /[A-Za-z0-9]/.exec(key.slice(at));
  // Letters inside an escape sequence are not escaped again.
  if (letter === null || key.slice(at).includes("%") || at === 0) return key;
  const code = letter[0].charCodeAt(0).toString(16);
  return `${key.slice(0, at + letter.index)}%${code}${key.slice(at + letter.index + 1)}`;
}

/** Writes the fixed words and the agent in capitals. Ids keep their case. */
function withCase(key: string): string {
  const parts = key.split(":");
  if (parts[0] !== "agent") return key;
  const isWord = /^[a-z][a-z0-9_-]{0,63}$/.test(parts[2] ?? "");
  const inChannel = parts.length > 4 && /^(group|channel|dm)$/.test(parts[3] ?? "") && isWord;
  const numbered = parts.length === 4 && /^(chat|subagent|mcp|acp|openai)$/.test(parts[2] ?? "");
  const fixed = inChannel ? [0, 1, 2, 3, 5] : numbered ? [0, 1, 2] : [0, 1];
  return parts.map((part, index) => (fixed.includes(index) ? part.toUpperCase() : part)).join(":");
}

function respelled(key: string, spelling: KeyInput["spelling"]): string {
  if (spelling === "spaces") return ` \t${key}\u00a0\n`;
  if (spelling === "caseOfWords") return withCase(key);
  return spelling === "escapes" ? withEscapes(key) : key;
}

/**
 * Checks that an accepted text is a single key, the same for every caller: short, of ordinary characters,
 * and in canonical form.
 */
function checkAccepted(input: KeyInput, rules: KeyRules, key: string): void {
  const lower = input.text.trim().toLowerCase();
  must(key.length <= 512, `${shown(input.text)} gave a key of ${key.length} characters`);
  must(
    !NEVER_IN_KEYS.test(key),
    `${shown(input.text)} gave a key with a character that nobody sees: ${shown(key)}`,
  );
  for (const caller of [input.caller, "other"]) {
    const again = canonicalKey(key, { agentId: caller }, rules);
    must(again.ok && again.value === key, `${shown(key)} is not its own canonical key: ${shown(again)}`);
    // A key of another scope, which no agent sees and no tool returns.
    if (key === "global" && input.scope !== "global") continue;
    const display = displayKey(key, caller, rules);
    const back = canonicalKey(display, { agentId: caller }, rules);
    must(
      back.ok && back.value === key,
      `${shown(key)}, shown to ${caller} as ${shown(display)}, leads elsewhere`,
    );
  }
  if (key === "unknown") must(lower === "unknown", `${shown(input.text)} was taken for "unknown"`);
  if (key === "global" && lower !== "global") {
    must(input.scope === "global", `${shown(input.text)} was taken for "global"`);
  }
  const spelled = respelled(key, input.spelling);
  if (spelled.length > 512) return;
  const same = canonicalKey(spelled, { agentId: "other" }, rules);
  must(same.ok && same.value === key, `${shown(spelled)} does not mean ${shown(key)}: ${shown(same)}`);
}

/** Checks that a key formatted from parts is parsed into the same parts, or is too long. */
function checkParts(parsed: ParsedKey): void {
  const key = formatKey(parsed);
  const read = parseKey(key);
  if (key.length > 512) must(!read.ok, `a key of ${key.length} characters was accepted`);
  else
    must(
      read.ok && JSON.stringify(read.value) === JSON.stringify(parsed),
      `${shown(key)} is read as ${shown(read)}`,
    );
}

export const sessionKeys: FuzzTarget<KeyInput> = {
  name: "session-keys",
  proves:
    "an accepted key is short, plain, its own canonical form and back again; what means the same is the same",
  inputs: fc.record({
    text,
    caller: agentId,
    mainKey: fc.constantFrom("main", "home", "a-b_c", "chat", "0"),
    scope: fc.constantFrom("per-sender" as const, "global" as const),
    spelling: fc.constantFrom("caseOfWords" as const, "escapes" as const, "spaces" as const, "none" as const),
    parsed: parsedKey,
  }),
  roundRuns: 20_000,
  ciRuns: 30_000,
  open: () => ({
    check(input) {
      const rules: KeyRules = { mainKey: input.mainKey, scope: input.scope, defaultAgentId: "main" };
      const result = canonicalKey(input.text, { agentId: input.caller }, rules);
      if (result.ok) checkAccepted(input, rules, result.value);
      else {
        must(result.code === "invalid_session_key", `refused with ${result.code}`);
        must(
          result.error.length < 1_000 && (result.hint ?? "").includes("agent:"),
          "a refusal names the valid forms",
        );
      }
      checkParts(input.parsed);
    },
  }),
};
