// Implements the read-only commands: help, status, visible sessions, and the sender's own identity.

import { keyRulesOf, openGate } from "../../access/access.ts";
import { COMMANDS, type CommandWord, findCommand } from "../../core/rules/command.ts";
import { modelOf, thinkingOf } from "../../core/shapes/settings/settings.ts";
import { type ListedSession, listVisible } from "../../flows/session/list.ts";
import { openSpawnsOf } from "../../store/queries/chains/flows.ts";
import { activityOf } from "../../store/queries/sessions/sessions.ts";
import {
  accessOf,
  type CommandContext,
  type ConversationContext,
  code,
  count,
  excerpt,
  isTrusted,
  keyCode,
  senderName,
  viewerOf,
} from "./context.ts";

const SESSIONS_SHOWN_MAX = 20;
const AGES = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
] as const;

/** Formats the time since `atMs`: `5 min ago`, `now`. */
export function ago(atMs: number, nowMs: number): string {
  const pastMs = nowMs - atMs;
  const found = AGES.find(([, ms]) => pastMs >= ms);
  return found === undefined ? "now" : `${Math.floor(pastMs / found[1])} ${found[0]} ago`;
}

function helpLine({ usage, description }: CommandWord): string {
  return `- \`${usage}\`: ${description}`;
}

export function help({ request, unit }: CommandContext): string {
  const { sender, args } = request;
  const mine = COMMANDS.filter((one) => sender.isOwner || !one.ownerOnly).filter(
    (one) => isTrusted(request) || !one.ownerOnlyInGroups,
  );
  const list = ["Send each command as a separate message:", ...mine.map(helpLine)].join("\n");
  if (args === "") return list;
  const name = args.replace(/^\//, "");
  const found = findCommand(name);
  return found === undefined
    ? `There is no command ${code(unit, `/${name}`)}. ${list}`
    : helpLine(found).slice(2);
}

export function whoAmI({ request, parts, unit }: CommandContext): string {
  const { sender, route, chatType, sessionKey, accountId, operator } = request;
  const goesTo = `Messages here go to the session ${code(unit, sessionKey, 512)}.`;
  if (operator !== undefined) return `You are an operator: ${operator.scopes.join(", ")}. ${goesTo}`;
  const { channel, to, threadId } = route;
  const owner = sender.isOwner ? "You are an owner." : "You are not an owner (`commands.owners`).";
  const thread = threadId === undefined ? "" : `, thread ${code(unit, threadId, 200)}`;
  const shared = parts.settings.channels.filter((account) => account.channel === channel).length > 1;
  const account = shared ? ` Account ${code(unit, accountId)}.` : "";
  return [
    `You are ${code(unit, senderName(request), 200)}. ${owner}`,
    `This is the ${chatType} chat ${code(unit, `${channel}:${to}`, 300)}${thread}.${account}`,
    goesTo,
  ].join("\n");
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}

export async function status(here: ConversationContext): Promise<string> {
  const { parts, unit, session } = here;
  const { settings } = parts;
  const verdict = await openGate(accessOf(here), await viewerOf(here)).decide("status", session);
  if (!verdict.allowed) return excerpt(here.unit, verdict.error);
  const activity = (await activityOf(unit.tx, [session.key])).get(session.key);
  const jobs = await openSpawnsOf(unit.tx, { sessionKey: session.key });
  const { totalTokens, contextUsed, cost, sendPolicy, label } = session;
  const named = label === undefined ? "" : ` (${code(here.unit, label)})`;
  const paid = cost > 0 ? `, ${cost.toFixed(4)} USD` : "";
  const model = code(unit, modelOf(settings, session), 200);
  const waiting = activity?.queuedRuns ?? 0;
  const doing = activity?.state ?? "idle";
  return [
    `${keyCode(here, session.key)}${named} is ${doing}, last used ${ago(session.updatedAt, unit.now)}.`,
    `- Model ${model}, thinking ${code(unit, thinkingOf(settings, session))}`,
    `- ${number(contextUsed)} tokens in its context; ${number(totalTokens)} used${paid}`,
    `- ${count(waiting, "message")} waiting, ${count(jobs.length, "sub-agent")} at work`,
    ...(sendPolicy === undefined
      ? []
      : [`- Its outgoing text is ${sendPolicy === "allow" ? "allowed" : "blocked"} (/send)`]),
  ].join("\n");
}

function sessionLine(here: ConversationContext, { session, state, queuedRuns }: ListedSession): string {
  const name = session.label ?? session.displayName;
  const waiting = queuedRuns === 0 ? "" : `, ${queuedRuns} waiting`;
  const named = name === undefined ? "" : ` ${code(here.unit, name)}`;
  const used = ago(session.updatedAt, here.unit.now);
  return `- ${keyCode(here, session.key)}${named}: ${state}${waiting}, ${used}`;
}

/**
 * Lists the sessions that this conversation may see. Other people's chats have their ids in their keys, so
 * only an operator, and an owner whom nobody reads along with, gets more than the conversation's own tree.
 */
export async function sessions(here: ConversationContext): Promise<string> {
  const { settings } = here.parts;
  const { sender, chatType, operator } = here.request;
  const isGlobal = keyRulesOf(settings).scope === "global";
  const seesOthers = operator !== undefined || (sender.isOwner && chatType === "direct");
  const { tools } = settings;
  const narrowed = {
    ...settings,
    tools: { ...tools, visibility: tools.visibility === "self" ? "self" : "tree" },
  } as const;
  const access = { ...accessOf(here), ...(seesOthers ? {} : { settings: narrowed }) };
  const { rows, nextCursor } = await listVisible(access, await viewerOf(here), {
    limit: SESSIONS_SHOWN_MAX,
    ...(isGlobal ? {} : { excludeKeys: ["global"] }),
  });
  if (rows.length === 0) return "No session is visible from here.";
  const more = nextCursor === undefined ? [] : ["and more"];
  return [...rows.map((row) => sessionLine(here, row)), ...more].join("\n");
}
