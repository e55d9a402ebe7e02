// The rule that decides who gets an answer on a channel: every setting, and every field that a sender can
// forge.

import { describe, expect, test } from "vitest";
import { decideInbound, type InboundQuestion, isOwner } from "../../../src/core/rules/inbound-policy.ts";
import type { AccountSettings } from "../../../src/core/shapes/settings/channels.ts";
import { telegramAccount } from "../../kit/platforms/people-channel.ts";

const ACCOUNT: AccountSettings = telegramAccount();
const OWNERS = ["telegram:1", "discord:2"];
const group = (more: object = {}) => ({ enabled: true, requireMention: true, ...more });

type MessageFacts = Partial<Omit<InboundQuestion, "chat">> & { chat?: Partial<InboundQuestion["chat"]> };

function decide(account: Partial<AccountSettings>, asked: MessageFacts): string {
  const question: InboundQuestion = {
    channel: "telegram",
    sender: { id: "7" },
    mentioned: false,
    ...asked,
    chat: { type: "direct", id: "7", ...asked.chat },
  };
  const verdict = decideInbound({ ...ACCOUNT, ...account }, OWNERS, question);
  return verdict.kind === "admit"
    ? `admit${verdict.agentId === undefined ? "" : ` ${verdict.agentId}`}`
    : verdict.kind;
}

const inGroup = (more: MessageFacts = {}): MessageFacts => ({
  mentioned: true,
  ...more,
  chat: { type: "group", id: "-100", ...more.chat },
});

describe("decides about direct messages", () => {
  test.each<[string, Partial<AccountSettings>, MessageFacts, string]>([
    ["pairing: a stranger is asked", {}, {}, "ask"],
    ["pairing: who has asked is asked again", {}, { peer: "pending" }, "ask"],
    ["pairing: who was let in is answered", {}, { peer: "approved" }, "admit"],
    ["pairing: who is in allowFrom is answered", { allowFrom: ["7"] }, {}, "admit"],
    ["pairing: an owner is answered", {}, { sender: { id: "1" } }, "admit"],
    ["allowlist: an id", { dmPolicy: "allowlist", allowFrom: ["7"] }, {}, "admit"],
    ["allowlist: an id with its channel", { dmPolicy: "allowlist", allowFrom: ["Telegram:7"] }, {}, "admit"],
    [
      "allowlist: an id of another channel",
      { dmPolicy: "allowlist", allowFrom: ["discord:7"] },
      {},
      "ignore",
    ],
    ["allowlist: everybody", { dmPolicy: "allowlist", allowFrom: ["*"] }, {}, "admit"],
    ["allowlist: nobody", { dmPolicy: "allowlist" }, {}, "ignore"],
    ["allowlist: who was let in is not on it", { dmPolicy: "allowlist" }, { peer: "approved" }, "ignore"],
    ["allowlist: part of an id", { dmPolicy: "allowlist", allowFrom: ["77"] }, {}, "ignore"],
    [
      "allowlist: a number with and without its plus",
      { dmPolicy: "allowlist", allowFrom: ["+4917"] },
      { sender: { id: "4917" } },
      "admit",
    ],
    [
      "allowlist: a user name, in any case",
      { dmPolicy: "allowlist", allowFrom: ["@Ada"] },
      { sender: { id: "7", alsoKnownAs: ["@ada"] } },
      "admit",
    ],
    [
      "allowlist: an entry with the sign of a name matches that name only",
      { dmPolicy: "allowlist", allowFrom: ["@7"] },
      { sender: { id: "7", alsoKnownAs: ["@ada"] } },
      "ignore",
    ],
    [
      "allowlist: another id of the sender, such as a phone number",
      { dmPolicy: "allowlist", allowFrom: ["+4917"] },
      { sender: { id: "0f1e", alsoKnownAs: ["4917"] } },
      "admit",
    ],
    [
      "allowlist: no name is no name",
      { dmPolicy: "allowlist", allowFrom: ["@"] },
      { sender: { id: "7", alsoKnownAs: [""] } },
      "ignore",
    ],
    ["open: everybody", { dmPolicy: "open" }, {}, "admit"],
    ["IP3: open: but for who is blocked", { dmPolicy: "open" }, { peer: "blocked" }, "ignore"],
    ["IP3: blocked, though named", { allowFrom: ["7"] }, { peer: "blocked" }, "ignore"],
    ["IP3: an owner can't be shut out", {}, { sender: { id: "1" }, peer: "blocked" }, "admit"],
    ["disabled: nobody", { dmPolicy: "disabled", allowFrom: ["*"] }, {}, "ignore"],
    ["disabled: no owner", { dmPolicy: "disabled" }, { sender: { id: "1" } }, "ignore"],
    ["a direct message needs no mention", { dmPolicy: "open" }, { mentioned: false }, "admit"],
  ])("%s", (_, account, asked, verdict) => {
    expect(decide(account, asked)).toBe(verdict);
  });
});

test.each(["222", "telegram:222", "+222"])("a numeric allow entry never matches a user name: %s", (entry) => {
  const asked = { sender: { id: "7", alsoKnownAs: ["@222"] } };
  expect(decide({ dmPolicy: "allowlist", allowFrom: [entry] }, asked)).toBe("ignore");
  expect(decide({ dmPolicy: "allowlist", allowFrom: ["@222"] }, asked)).toBe("admit");
});

describe("decides about groups", () => {
  test.each<[string, Partial<AccountSettings>, MessageFacts, string]>([
    ["IP1: allowlist: a group that is not named", {}, inGroup(), "ignore"],
    ["allowlist: one that is named", { groups: { "-100": group() } }, inGroup(), "admit"],
    ["allowlist: with its channel", { groups: { "telegram:-100": group() } }, inGroup(), "admit"],
    ["allowlist: the entry for all", { groups: { "*": group() } }, inGroup(), "admit"],
    [
      "allowlist: by another id, such as its guild",
      { groups: { g1: group() } },
      inGroup({ chat: { alsoKnownAs: ["g1"] } }),
      "admit",
    ],
    [
      "allowlist: its own entry goes before that for all",
      { groups: { "*": group(), "-100": group({ enabled: false }) } },
      inGroup(),
      "ignore",
    ],
    [
      "allowlist: by its public name, in any case",
      { groups: { "@Lunch": group() } },
      inGroup({ chat: { alsoKnownAs: ["@lunch"] } }),
      "admit",
    ],
    [
      "allowlist: a numeric entry never matches a group's public name",
      { groups: { "222": group() } },
      inGroup({ chat: { alsoKnownAs: ["@222"] } }),
      "ignore",
    ],
    ["allowlist: a sender who may speak anywhere", { groupAllowFrom: ["7"] }, inGroup(), "admit"],
    ["allowlist: an owner", {}, inGroup({ sender: { id: "1" } }), "admit"],
    [
      "not enabled: nobody, no owner either",
      { groups: { "-100": group({ enabled: false }) } },
      inGroup({ sender: { id: "1" } }),
      "ignore",
    ],
    ["open: any group", { groupPolicy: "open" }, inGroup(), "admit"],
    [
      "open: the entry of a group counts",
      { groupPolicy: "open", groups: { "-100": group({ allowFrom: ["8"] }) } },
      inGroup(),
      "ignore",
    ],
    ["disabled: no group", { groupPolicy: "disabled", groups: { "*": group() } }, inGroup(), "ignore"],
    ["IP1: without a mention", { groupPolicy: "open" }, inGroup({ mentioned: false }), "ignore"],
    [
      "where none is needed",
      { groupPolicy: "open", requireMention: false },
      inGroup({ mentioned: false }),
      "admit",
    ],
    [
      "where the group needs none",
      { groups: { "-100": group({ requireMention: false }) } },
      inGroup({ mentioned: false }),
      "admit",
    ],
    [
      "a command of the menu names us",
      { groupPolicy: "open" },
      inGroup({ mentioned: false, command: "native" }),
      "admit",
    ],
    [
      "a written command does not",
      { groupPolicy: "open" },
      inGroup({ mentioned: false, command: "written" }),
      "ignore",
    ],
    [
      "an owner's does",
      { groupPolicy: "open" },
      inGroup({ mentioned: false, command: "written", sender: { id: "1" } }),
      "admit",
    ],
    [
      "an owner's chatter does not",
      { groupPolicy: "open" },
      inGroup({ mentioned: false, sender: { id: "1" } }),
      "ignore",
    ],
    ["who may write there", { groups: { "-100": group({ allowFrom: ["7"] }) } }, inGroup(), "admit"],
    ["who may not", { groups: { "-100": group({ allowFrom: ["8"] }) } }, inGroup(), "ignore"],
    ["IP3: who is blocked", { groupPolicy: "open" }, inGroup({ peer: "blocked" }), "ignore"],
    ["strangers are not asked in groups", { groupPolicy: "open" }, inGroup(), "admit"],
    ["the group's agent", { groups: { "-100": group({ agentId: "writer" }) } }, inGroup(), "admit writer"],
    ["a group called like what every object has", {}, inGroup({ chat: { id: "constructor" } }), "ignore"],
    ["and another one", { groups: { "*": group() } }, inGroup({ chat: { id: "__proto__" } }), "admit"],
  ])("%s", (_, account, asked, verdict) => {
    expect(decide(account, asked)).toBe(verdict);
  });
});

test.each([
  [["telegram:1"], "telegram", "1", true],
  [["Telegram: 1 "], "telegram", "1", true],
  [["telegram:1"], "discord", "1", false],
  [["1"], "telegram", "1", false],
  [["telegram:*"], "telegram", "1", false],
  [["*"], "telegram", "1", false],
  [["signal:+491"], "signal", "491", true],
  [["telegram:ada"], "telegram", "7", false],
  [[], "telegram", "1", false],
])("IP2: with owners %j, on channel %s, sender %s is an owner: %s", (owners, channel, id, is) => {
  expect(isOwner(owners, channel, { id })).toBe(is);
  const renamed = { id: "999", alsoKnownAs: [id, `@${id}`] };
  expect(isOwner(owners, channel, renamed)).toBe(false);
});
