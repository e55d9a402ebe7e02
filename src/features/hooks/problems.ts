// Checks what the schema cannot say about the settings of web hooks. Every problem is reported with its path.

import type { Problem } from "../../config/source.ts";
import { LAST, WEBCHAT } from "../../core/shapes/route.ts";
import { parseKey } from "../../core/shapes/session-key.ts";
import { agentProblem, type Settings } from "../../core/shapes/settings/settings.ts";
import { type HookMapping, messageOf, nameOf, pathOf } from "./settings.ts";
import { templateProblem } from "./template.ts";

/** Minimum length of a token. A shorter one could be guessed by trying for years. */
const TOKEN_CHARS_MIN = 16;

type Tell = (name: string, text: string) => void;

function checkProof(one: HookMapping, tell: Tell): void {
  const { preset, secret } = one;
  if (preset !== "token" && secret === undefined) tell("secret", `is missing; preset ${preset} needs it`);
  if (preset === "token" && secret !== undefined) {
    tell("secret", 'is valid only with preset "github" or "hmac"; preset "token" uses hooks.token');
  }
  for (const name of ["signatureHeader", "deliveryHeader"] as const) {
    if (preset !== "hmac" && one[name] !== undefined) tell(name, 'is valid only with preset "hmac"');
  }
}

function checkDelivery(one: HookMapping, { channels }: Settings, tell: Tell): void {
  const { deliver, channel = WEBCHAT, to, accountId, threadId } = one;
  const named = [one.channel, to, accountId, threadId].some((value) => value !== undefined);
  if (!deliver && named) tell("deliver", "must be true if channel or to is set");
  if (channel === WEBCHAT || channel === LAST) {
    const isMore = accountId !== undefined || threadId !== undefined;
    if (isMore) tell(accountId === undefined ? "threadId" : "accountId", `is not valid with ${channel}`);
    return;
  }
  const accounts = channels.filter((account) => account.channel === channel);
  if (accounts.length === 0) {
    const there = [WEBCHAT, LAST, ...new Set(channels.map((account) => account.channel))].join(", ");
    tell("channel", `there is no channel ${JSON.stringify(channel)}; the configured channels are ${there}`);
  } else if (accountId !== undefined && !accounts.some((account) => account.accountId === accountId)) {
    const ids = accounts.map((account) => account.accountId).join(", ");
    tell("accountId", `${channel} has no account ${JSON.stringify(accountId)}; its accounts are ${ids}`);
  }
  if (to === undefined) tell("to", "is missing; set the id of a chat");
}

function checkMapping(one: HookMapping, settings: Settings, tell: Tell): void {
  const { agentId, sessionKey, match, preset } = one;
  const ids = settings.agents.map(({ id }) => id);
  const problem = agentId === undefined ? undefined : agentProblem(agentId, ids);
  if (problem !== undefined) tell("agentId", problem);
  if (sessionKey !== undefined && sessionKey !== "main" && !parseKey(sessionKey).ok) {
    tell("sessionKey", "is not a session key; like hook:ci, main or agent:<agentId>:main");
  }
  checkDelivery(one, settings, tell);
  if (preset !== "github" && match.events.length > 0)
    tell("match", 'events are valid only with preset "github"');
  checkProof(one, tell);
  const message = messageOf(one);
  if (message.trim() === "") tell("message", "is missing; set the message for the agent");
  const wrong = templateProblem(message);
  if (wrong !== undefined) tell("message", wrong);
}

function checkToken({ hooks: { enabled, token }, gateway }: Settings, problems: Problem[]): void {
  if (!enabled || !token) return;
  const path = ["hooks", "token"];
  if (token === gateway.token || gateway.tokens.some((one) => one.token === token)) {
    const text =
      "is the same as a token of the gateway, so senders of hooks could do everything. Choose another one.";
    problems.push({ path, text });
  }
  if (token.length < TOKEN_CHARS_MIN) {
    problems.push({ path, text: `must have at least ${TOKEN_CHARS_MIN} characters` });
  }
}

export function hookProblems(settings: Settings): readonly Problem[] {
  const { mappings, outgoing } = settings.hooks;
  const problems: Problem[] = [];
  checkToken(settings, problems);
  for (const [index, one] of mappings.entries()) {
    const tell: Tell = (name, text) => problems.push({ path: ["hooks", "mappings", index, name], text });
    checkMapping(one, settings, tell);
    const before = mappings.slice(0, index);
    if (before.some(({ id }) => id === one.id)) tell("id", `"${one.id}" is listed twice`);
    else if (before.some((other) => pathOf(other) === pathOf(one))) {
      tell("match", `POST /hooks/${pathOf(one)} already belongs to another mapping`);
    }
  }
  const names = outgoing.map(nameOf);
  for (const [index, name] of names.entries()) {
    if (names.indexOf(name) === index) continue;
    const text = `"${name}" is listed twice; give each hook a different name`;
    problems.push({ path: ["hooks", "outgoing", index, "name"], text });
  }
  return problems;
}
