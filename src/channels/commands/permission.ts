// Implements the commands with which owners answer the permission requests of agents, in any chat. An owner
// on a chat platform answers for the whole gateway. The list of requests, with their details, is shown only
// in a direct chat, because requests may come from sessions that a group must not see (I9). If an operator
// sends the command in a session of the gateway, the list has only requests of sessions that this session may
// see.

import { openGate } from "../../access/access.ts";
import {
  type InstructionChange,
  PERMISSION_SCOPES,
  type PermissionDecision,
  type PermissionQuestion,
} from "../../core/shapes/permission.ts";
import { markdownQuote } from "../../core/text/safe-text.ts";
import { answerRequest, listInstructionChanges } from "../../flows/instructions.ts";
import { shortPermissionId } from "../../flows/permission.ts";
import { openPermissions } from "../../store/queries/permissions.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { accessOf, type CommandContext, code, count, excerpt, senderName, viewerOf, why } from "./context.ts";

const LISTED_MAX = 20;
const DIFF_LINES_MAX = 40;

/** Returns the open requests that the sender may answer here. */
async function openFor(context: CommandContext): Promise<PermissionQuestion[]> {
  const { unit, request } = context;
  const open = await openPermissions(unit.tx, unit.now);
  if (request.operator === undefined) return open;
  // An operator's answer becomes part of this session's transcript, so only sessions that this session may
  // send to are listed.
  const session = await getSession(unit.tx, request.sessionKey);
  if (session === undefined) return [];
  const gate = openGate(accessOf(context), await viewerOf({ ...context, session }));
  const admitted: PermissionQuestion[] = [];
  for (const question of open) {
    const asker = await getSession(unit.tx, question.sessionKey);
    if (asker !== undefined && (await gate.admits("send", asker))) admitted.push(question);
  }
  return admitted;
}

function lineOf({ unit }: CommandContext, question: PermissionQuestion): string {
  const { id, agentId, title, detail } = question;
  const texts = [title, ...(detail === undefined ? [] : [detail])].map(markdownQuote);
  return [`${code(unit, shortPermissionId(id))} ${code(unit, agentId)}:`, ...texts].join("\n");
}

/** Returns the changed instruction files about which the sender may answer here. */
async function changesFor({ parts, unit, request }: CommandContext): Promise<InstructionChange[]> {
  // An operator's answer becomes part of this session's transcript.
  return request.operator === undefined ? listInstructionChanges(unit.tx, parts) : [];
}

function changeLines({ unit }: CommandContext, change: InstructionChange): string {
  const { id, path, kind, source, diff } = change;
  const lines = diff.replaceAll("```", "` ` `").split("\n");
  const from = excerpt(unit, source, 200);
  const left = lines.length - DIFF_LINES_MAX;
  return [
    `- ${code(unit, shortPermissionId(id))} ${code(unit, path, 300)}: ${kind} (${from})`,
    "```",
    ...lines.slice(0, DIFF_LINES_MAX),
    ...(left > 0 ? [`… ${left} more lines: parley permissions shows them`] : []),
    "```",
  ].join("\n");
}

/** Runs `/approvals`. */
export async function approvals(context: CommandContext): Promise<string> {
  const { request } = context;
  if (request.chatType !== "direct") return "/approvals lists requests only in a direct chat.";
  const open = await openFor(context);
  const changes = await changesFor(context);
  if (open.length + changes.length === 0) return "No permission request is open.";
  const lines = open.slice(0, LISTED_MAX).map((one) => lineOf(context, one));
  const more = open.length > LISTED_MAX ? [`and ${open.length - LISTED_MAX} more`] : [];
  const changed = changes.slice(0, LISTED_MAX).map((one) => changeLines(context, one));
  return [
    `${count(open.length + changes.length, "request")}. Answer with /allow or /deny and the id.`,
    ...lines,
    ...more,
    ...(changed.length === 0
      ? []
      : ["Instructions changed after content from outside (/deny restores them):"]),
    ...changed,
  ].join("\n");
}

async function answer(context: CommandContext, decision: PermissionDecision): Promise<string> {
  const { unit, request } = context;
  const [id = "", wanted = "once", ...more] = request.args.split(/\s+/);
  const scope = PERMISSION_SCOPES.find((one) => one === wanted);
  if (id === "" || scope === undefined || more.length > 0 || (decision === "deny" && wanted !== "once"))
    return `/${decision} takes the id of one request: /approvals lists them.`;
  const by = senderName(request);
  const covered = new Set((await openFor(context)).map(({ sessionKey }) => sessionKey));
  const rights = {
    covers: (key: string) => covered.has(key),
    everySession: request.operator?.patterns === undefined,
  };
  const { settings, guidance } = context.parts;
  const parts = request.operator === undefined ? { settings, guidance } : { settings };
  const answered = await answerRequest(unit, parts, { id, decision, scope, by }, rights);
  if (!answered.ok) return why(answered);
  const { agentId, title } = answered.value;
  const lasting = { once: "", session: " in this session", always: " always" }[scope];
  const whose = agentId === undefined ? "" : ` for ${code(unit, agentId)}`;
  const done = `${decision === "allow" ? `Allowed${lasting}` : "Denied"}${whose}`;
  return request.chatType === "direct" ? `${done}:\n${markdownQuote(title)}` : `${done}.`;
}

export const allow = (context: CommandContext): Promise<string> => answer(context, "allow");
export const deny = (context: CommandContext): Promise<string> => answer(context, "deny");
