// Builds the incoming and outgoing web hooks of a configuration, with defaults filled in.
// Every problem is reported with its path.

import { createHash } from "node:crypto";
import { optional } from "../core/optional.ts";
import {
  type HookMapping,
  type HookProof,
  type IncomingHooks,
  templateProblem,
} from "../core/shapes/incoming-hook.ts";
import { LAST, WEBCHAT } from "../core/shapes/route.ts";
import { parseKey } from "../core/shapes/session-key.ts";
import type { ChannelAccount } from "../core/shapes/settings/channels.ts";
import type { AgentSettings, OutgoingHook, TokenSettings } from "../core/shapes/settings/settings.ts";
import type { Path } from "../core/text/value-path.ts";
import { agentProblem } from "./problems.ts";
import { HOOK_KEYS_DEFAULT } from "./schema/hooks.ts";
import type { ConfigFile } from "./schema/schema.ts";
import type { Problem } from "./source.ts";

type HooksInFile = NonNullable<ConfigFile["hooks"]>;
type MappingInFile = HooksInFile["mappings"][number];

/** Minimum length of a token. A shorter one could be guessed by trying for years. */
const TOKEN_CHARS_MIN = 16;
const SIGNATURE_HEADER = "x-signature-256";
const DELIVERY_HEADER = "x-delivery-id";
const GITHUB_MESSAGE = [
  "GitHub tells of {{event}} {{body.action}} in {{body.repository.full_name}}, by {{body.sender.login}}.",
  "{{body.issue.title}}{{body.pull_request.title}}{{body.head_commit.message}}{{body.release.name}}",
  "{{body.issue.html_url}}{{body.pull_request.html_url}}{{body.comment.html_url}}{{body.compare}}",
  "{{body.comment.body}}",
].join("\n");

/** Other settings that the checks need. */
interface Around {
  readonly agents: readonly AgentSettings[];
  readonly channels: readonly ChannelAccount[];
  /** The token of the gateway, if it is set. */
  readonly token: string | undefined;
  readonly tokens: readonly TokenSettings[];
}

type Tell = (name: string, text: string) => void;

function proofOf(one: MappingInFile, tell: Tell): HookProof {
  const { preset, secret } = one;
  if (preset !== "token" && secret === undefined) tell("secret", `is missing; preset ${preset} needs it`);
  if (preset === "token" && secret !== undefined) {
    tell("secret", 'is valid only with preset "github" or "hmac"; preset "token" uses hooks.token');
  }
  for (const name of ["signatureHeader", "deliveryHeader"] as const) {
    if (preset !== "hmac" && one[name] !== undefined) tell(name, 'is valid only with preset "hmac"');
  }
  if (preset === "token") return { kind: preset };
  if (preset === "github") return { kind: preset, secret: secret ?? "" };
  const { signatureHeader = SIGNATURE_HEADER, deliveryHeader = DELIVERY_HEADER } = one;
  return { kind: preset, secret: secret ?? "", signatureHeader, deliveryHeader };
}

function messageOf({ message, preset }: MappingInFile, tell: Tell): string {
  const template = message ?? (preset === "github" ? GITHUB_MESSAGE : "");
  if (template.trim() === "") tell("message", "is missing; set the message for the agent");
  const problem = templateProblem(template);
  if (problem !== undefined) tell("message", problem);
  return template;
}

function checkDelivery(one: MappingInFile, channels: readonly ChannelAccount[], tell: Tell): void {
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

function checkMapping(one: MappingInFile, { agents, channels }: Around, tell: Tell): void {
  const { agentId, sessionKey, match, preset } = one;
  const ids = agents.map(({ id }) => id);
  const problem = agentId === undefined ? undefined : agentProblem(agentId, ids);
  if (problem !== undefined) tell("agentId", problem);
  if (sessionKey !== undefined && sessionKey !== "main" && !parseKey(sessionKey).ok) {
    tell("sessionKey", "is not a session key; like hook:ci, main or agent:<agentId>:main");
  }
  checkDelivery(one, channels, tell);
  if (preset !== "github" && match.events.length > 0)
    tell("match", 'events are valid only with preset "github"');
}

function mappingOf(one: MappingInFile, tell: Tell): HookMapping {
  const { match, preset, secret, signatureHeader, deliveryHeader, message, ...rest } = one;
  const { deliver, channel = WEBCHAT, to = "main", accountId, threadId, ...own } = rest;
  return {
    ...own,
    path: match.path ?? one.id,
    proof: proofOf(one, tell),
    events: match.events,
    message: messageOf(one, tell),
    ...(own.agentId && { agentId: own.agentId.toLowerCase() }),
    ...(deliver && { deliver: { channel, to, ...optional({ accountId, threadId }) } }),
  };
}

function checkToken(hooks: HooksInFile, around: Around, problems: Problem[]): void {
  const { enabled, token } = hooks;
  if (!enabled || !token) return;
  const path: Path = ["hooks", "token"];
  if (token === around.token || around.tokens.some((one) => one.token === token)) {
    const text =
      "is the same as a token of the gateway, so senders of hooks could do everything. Choose another one.";
    problems.push({ path, text });
  }
  if (token.length < TOKEN_CHARS_MIN) {
    problems.push({ path, text: `must have at least ${TOKEN_CHARS_MIN} characters` });
  }
}

export function incomingHooksOf(
  hooks: HooksInFile | undefined,
  around: Around,
  problems: Problem[],
): IncomingHooks {
  if (hooks === undefined) return { enabled: false, allowedSessionKeys: HOOK_KEYS_DEFAULT, mappings: [] };
  checkToken(hooks, around, problems);
  const mappings = hooks.mappings.map((one, index) => {
    const tell: Tell = (name, text) => problems.push({ path: ["hooks", "mappings", index, name], text });
    checkMapping(one, around, tell);
    const path = one.match.path ?? one.id;
    const before = hooks.mappings.slice(0, index);
    if (before.some(({ id }) => id === one.id)) tell("id", `"${one.id}" is listed twice`);
    else if (before.some(({ id, match }) => (match.path ?? id) === path)) {
      tell("match", `POST /hooks/${path} already belongs to another mapping`);
    }
    return mappingOf(one, tell);
  });
  const { enabled, token, allowedSessionKeys } = hooks;
  return { enabled, allowedSessionKeys, mappings, ...(token ? { token } : {}) };
}

/**
 * Returns a hook's name. The default name is the host and a hash of the address: the address cannot be
 * derived from it.
 */
function nameOf({ name, url }: HooksInFile["outgoing"][number]): string {
  if (name !== undefined) return name;
  const { host } = new URL(url);
  return `${host}-${createHash("sha256").update(url).digest("hex").slice(0, 8)}`;
}

/** Returns the enabled hooks. Reports duplicate names. */
export function outgoingHooksOf(inFile: HooksInFile["outgoing"], problems: Problem[]): OutgoingHook[] {
  const names = inFile.map(nameOf);
  return inFile.flatMap((hook, index) => {
    const name = names[index] ?? "";
    if (names.indexOf(name) !== index) {
      const text = `"${name}" is listed twice; give each hook a different name`;
      problems.push({ path: ["hooks", "outgoing", index, "name"], text });
    }
    const { enabled, ...rest } = hook;
    return enabled ? [{ ...rest, name, events: [...new Set(hook.events)] }] : [];
  });
}
