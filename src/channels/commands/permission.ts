// Implements the commands with which owners answer the permission requests of agents, in any chat. An owner
// on a chat platform answers for the whole gateway. The list of requests, with their details, is shown only
// in a direct chat, because requests may come from sessions that a group must not see (I9). If an operator
// sends the command in a session of the gateway, the list has only requests of sessions that this session may
// see.

import { openGate } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import { shortAnswers } from "../../core/rules/approval/form.ts";
import {
  type InstructionChange,
  LASTING_SCOPES,
  lastingWords,
  PERMISSION_SCOPES,
  type PermissionDecision,
  type PermissionQuestion,
  type PermissionScope,
} from "../../core/shapes/permission.ts";
import { head } from "../../core/text/cut.ts";
import { markdownLine, markdownQuote } from "../../core/text/safe-text.ts";
import { answerRequest, listInstructionChanges } from "../../flows/instructions.ts";
import {
  answerWords,
  choicesOf,
  findPermission,
  forgetRule,
  shortPermissionId,
} from "../../flows/permission.ts";
import { listRules } from "../../store/queries/permission-rules.ts";
import { openPermissions } from "../../store/queries/permissions.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import {
  accessOf,
  type CommandAnswer,
  type CommandContext,
  code,
  count,
  excerpt,
  senderName,
  viewerOf,
  why,
} from "./context.ts";

const LISTED_MAX = 20;
/** Maximum size of a change that the chat shows whole. A larger one is not allowed there. */
const DIFF_LINES_MAX = 40;
const DIFF_CHARS_MAX = 4_000;
const SHOWN_ELSEWHERE =
  "The chat does not show the whole change. See and allow it in the inbox of the page, or with " +
  "npx parley-gateway permissions. /deny works here, too.";

/** Returns those of the sessions whose requests and rules the sender may answer here. */
async function coveredOf(context: CommandContext, keys: readonly string[]): Promise<ReadonlySet<string>> {
  const { unit, request } = context;
  if (request.operator === undefined) return new Set(keys);
  // An operator's answer becomes part of this session's transcript, so only sessions that this session may
  // send to are covered.
  const session = await getSession(unit.tx, request.sessionKey);
  if (session === undefined) return new Set();
  const gate = openGate(accessOf(context), await viewerOf({ ...context, session }));
  const covered = new Set<string>();
  for (const key of new Set(keys)) {
    const asker = await getSession(unit.tx, key);
    if (asker !== undefined && (await gate.admits("send", asker))) covered.add(key);
  }
  return covered;
}

/** Returns the open requests that the sender may answer here. */
async function openFor(context: CommandContext): Promise<PermissionQuestion[]> {
  const { unit } = context;
  const open = await openPermissions(unit.tx, unit.now);
  const covered = await coveredOf(
    context,
    open.map(({ sessionKey }) => sessionKey),
  );
  return open.filter(({ sessionKey }) => covered.has(sessionKey));
}

function lineOf({ unit }: CommandContext, question: PermissionQuestion): string {
  const { id, agentId, title, detail } = question;
  const texts = [title, ...(detail === undefined ? [] : [detail])].map(markdownQuote);
  const how = question.scopes.length === 0 ? [`Answer ${answerWords(question)}.`] : [];
  return [`${code(unit, shortPermissionId(id))} ${code(unit, agentId)}:`, ...texts, ...how].join("\n");
}

/** Returns the changed instruction files about which the sender may answer here. */
async function changesFor({ parts, unit, request }: CommandContext): Promise<InstructionChange[]> {
  // An operator's answer becomes part of this session's transcript.
  return request.operator === undefined ? listInstructionChanges(unit.tx, parts) : [];
}

/** Returns the part of a change that the chat shows. */
const shownPart = ({ diff }: InstructionChange): string =>
  head(diff.split("\n").slice(0, DIFF_LINES_MAX).join("\n"), DIFF_CHARS_MAX);

function changeLines({ unit }: CommandContext, change: InstructionChange): string {
  const { id, path, kind, source, diff } = change;
  const shown = shownPart(change);
  const from = excerpt(unit, source, 200);
  return [
    `- ${code(unit, shortPermissionId(id))} ${code(unit, path, 300)}: ${kind} (${from})`,
    "```",
    shown.replaceAll("```", "` ` `"),
    "```",
    ...(shown === diff ? [] : [SHOWN_ELSEWHERE]),
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

/** Shows what a lasting permission allows, and how to confirm it. */
function confirmation(
  { unit, request }: CommandContext,
  question: PermissionQuestion,
  scope: Exclude<PermissionScope, "once">,
): CommandAnswer {
  const { id, title } = question;
  const isShown = request.chatType === "direct";
  const command = isShown ? `\n${markdownQuote(title)}` : "";
  const words = isShown
    ? lastingWords(question, scope)
    : lastingWords({ agentId: question.agentId, ...optional({ rule: question.rule }) }, scope);
  const typed = `/allow ${shortPermissionId(id)} ${scope} yes`;
  const label = `Yes, ${LASTING_SCOPES[scope].toLowerCase()}`;
  const [once, deny] = choicesOf(question);
  const yes = { label, command: `/allow ${id} ${scope} yes` };
  return {
    text: `${markdownLine(words)}${command}\n\nNothing is allowed yet. To confirm: ${code(unit, typed)}`,
    // A second press at the place of the first one must not confirm it.
    choices: [once, yes, deny].filter((choice) => choice !== undefined),
  };
}

async function undo(context: CommandContext, id: string): Promise<string | undefined> {
  const { unit } = context;
  const rules = await listRules(unit.tx);
  const covered = await coveredOf(
    context,
    rules.map(({ sessionKey }) => sessionKey),
  );
  const rule = await forgetRule(unit, id, (key) => covered.has(key));
  if (!rule.ok) return undefined;
  return `Undone for ${code(unit, rule.value.agentId)}. The next call of the command asks again.`;
}

async function answer(
  context: CommandContext,
  decision: PermissionDecision,
): Promise<string | CommandAnswer> {
  const { unit, request } = context;
  const [id = "", word = "once", sure, ...more] = request.args.split(/\s+/);
  // The number of an answer to a form.
  const number = decision === "allow" && /^\d{1,3}$/.test(word) ? Number(word) : undefined;
  const wanted = number === undefined ? word : "once";
  const scope = PERMISSION_SCOPES.find((one) => one === wanted);
  const isUnclear = more.length > 0 || (sure !== undefined && (sure !== "yes" || number !== undefined));
  if (id === "" || scope === undefined || isUnclear || (decision === "deny" && wanted !== "once"))
    return `/${decision} takes the id of one request: /approvals lists them.`;
  const by = senderName(request);
  const covered = new Set((await openFor(context)).map(({ sessionKey }) => sessionKey));
  const rights = {
    covers: (key: string) => covered.has(key),
    everySession: request.operator?.patterns === undefined,
  };
  const asked = await findPermission(unit, id, rights.covers);
  const form = asked.ok ? asked.value.form : undefined;
  const content = form && number !== undefined ? shortAnswers(form)[number - 1]?.content : undefined;
  if (asked.ok && number !== undefined && content === undefined)
    return {
      text: `There is no answer ${number}. An owner answers ${answerWords(asked.value)}.`,
      isRefused: true,
    };
  if (scope !== "once" && sure === undefined && asked.ok && asked.value.scopes.includes(scope))
    return confirmation(context, asked.value, scope);
  const undone = decision === "deny" && !asked.ok ? await undo(context, id) : undefined;
  if (undone !== undefined) return undone;
  const isHidden = (one: InstructionChange) => one.id.startsWith(id) && shownPart(one) !== one.diff;
  if (decision === "allow" && !asked.ok && (await changesFor(context)).some(isHidden))
    return { text: SHOWN_ELSEWHERE, isRefused: true };
  const { settings, guidance } = context.parts;
  const parts = request.operator === undefined ? { settings, guidance } : { settings };
  const answered = await answerRequest(unit, parts, { id, decision, scope, content, by }, rights);
  if (!answered.ok) return { text: why(answered), isRefused: true };
  const { agentId, title, ruleId } = answered.value;
  const lasting = scope === "once" ? "" : ` ${LASTING_SCOPES[scope].toLowerCase()}`;
  const whose = agentId === undefined ? "" : ` for ${code(unit, agentId)}`;
  const done = `${decision === "allow" ? `Allowed${lasting}` : "Denied"}${whose}`;
  const text = request.chatType === "direct" ? `${done}:\n${markdownQuote(title)}` : `${done}.`;
  if (ruleId === undefined) return text;
  return {
    text: `${text}\n\nUndo with /deny ${shortPermissionId(ruleId)}`,
    choices: [{ label: "Undo", command: `/deny ${ruleId}` }],
  };
}

export const allow = (context: CommandContext) => answer(context, "allow");
export const deny = (context: CommandContext) => answer(context, "deny");
