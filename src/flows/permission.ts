// Stores permission requests of agents and their answers, and announces each request in the chat in which the
// work was requested.
// PD1: a request that a run waits for is denied if there is no answer in time, the run ends, the gateway
//      stops or the store fails.
// PD2: a request is decided once: the first answer counts, in whatever process it arrives.

import { spawnChainOf } from "../access/spawn-chain.ts";
import { isObject } from "../core/json.ts";
import { optional } from "../core/optional.ts";
import { completeAnswer, shortAnswers } from "../core/rules/approval/form.ts";
import type { Choice } from "../core/rules/command.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import {
  type AnsweredPermission,
  type FormField,
  LASTING_SCOPES,
  type PermissionAnswered,
  type PermissionQuestion,
  type PermissionRule,
  type PermissionScope,
  type ServerPrompt,
  type ServerQuestion,
} from "../core/shapes/permission.ts";
import { isInHouse } from "../core/shapes/route.ts";
import { cut, head, quoted } from "../core/text/cut.ts";
import { markdownLine, markdownQuote, visibleText } from "../core/text/safe-text.ts";
import type { Engine } from "../engine/engine.ts";
import type { RunWait } from "../engine/lanes/waits.ts";
import type { Unit } from "../engine/unit.ts";
import { takeAdvisoryLock } from "../store/locks.ts";
import { countRules, deleteRule, insertRule, listRules } from "../store/queries/permission-rules.ts";
import {
  type AskedCommand,
  commandOf,
  decidePermission,
  deletePermission,
  ELICITATION,
  insertPermission,
  LABELS_KIND,
  openPermissions,
  SAMPLING,
} from "../store/queries/permissions.ts";
import { getRun } from "../store/queries/runs/runs.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import type { Log } from "../world.ts";
import { placeOfRun } from "./conversation/party.ts";
import { queueNote } from "./delivery/outbox.ts";

const OPEN_MAX = 200;
/** Maximum number of open requests of one session, so that one agent cannot block others. */
const OPEN_OF_SESSION_MAX = 20;
/** Maximum number of commands that are allowed for longer than once. */
const RULES_MAX = 1_000;
/**
 * Maximum length of each text of a request, as it is shown. People see all of it, also in the narrowest
 * channel, or the request is denied.
 */
const SHOWN_MAX_CHARS = 1_500;
/** The same for a request to a model, which is a conversation. */
const PROMPT_MAX_CHARS = 10_000;
/** Kinds of requests whose texts change nothing here: of ACP programs that write, and of MCP servers. */
const WRITING: readonly string[] = ["edit", "think", "switch_mode", ELICITATION];
/** Number of characters of an id that people write to answer in a chat. */
const SHORT_ID_CHARS = 8;

export interface PermissionRequest {
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId: string;
  /** The attempt of the run that asks. A later attempt asks again, unless `about` names the tool call. */
  readonly attempt: number;
  readonly title: string;
  readonly kind?: string | undefined;
  readonly rawInput: unknown;
  readonly askMs: number;
  /** The scopes that an answer may have. Default: once. */
  readonly scopes?: readonly PermissionScope[];
  readonly about?: AskedCommand;
  /** True if strangers read the chat that the work came from: a note there tells no texts of the request. */
  readonly isHidden?: boolean;
  /** The question of an MCP server. Its long texts are shortened. */
  readonly form?: ServerQuestion;
  /** The request of an MCP server to a model. */
  readonly prompt?: ServerPrompt;
}

/** Returns the id with which people answer a request in a chat. */
export function shortPermissionId(id: string): string {
  return id.slice(0, SHORT_ID_CHARS);
}

/** Maximum number of buttons that answer a form, and of characters of a label. */
const BUTTONS_MAX = 8;
const LABEL_MAX_CHARS = 40;

/** Returns the buttons that answer a request. */
export function choicesOf({
  id,
  scopes,
  form,
}: Pick<PermissionQuestion, "id" | "scopes" | "form">): Choice[] {
  const answers = form === undefined ? [] : shortAnswers(form).slice(0, BUTTONS_MAX);
  return [
    ...(scopes.includes("once") ? [{ label: "Allow once", command: `/allow ${id}` }] : []),
    ...answers.map(({ title }, at) => ({
      label: cut(title, LABEL_MAX_CHARS),
      command: `/allow ${id} ${at + 1}`,
    })),
    { label: "Deny", command: `/deny ${id}` },
    ...scopes.flatMap((scope) =>
      // A second press confirms it.
      scope === "once" ? [] : { label: `${LASTING_SCOPES[scope]}…`, command: `/allow ${id} ${scope}` },
    ),
  ];
}

const allowLine = (id: string): string => `npx parley-gateway permissions allow ${id}`;

/** Returns the words in Markdown that say how an owner answers in a chat. */
export function answerWords({ id, scopes, form }: PermissionQuestion): string {
  const shortId = shortPermissionId(id);
  if (scopes.includes("once")) return `with /allow ${shortId} or /deny ${shortId}`;
  const answers = form === undefined ? [] : shortAnswers(form);
  if (answers.length === 0)
    return `in the inbox of the page, with ${allowLine(shortId)}, or with /deny ${shortId}`;
  // The titles are the server's: quoted and short, so that none can be taken for our words.
  const named = answers
    .slice(0, BUTTONS_MAX)
    .map(({ title }) => markdownLine(quoted(title, LABEL_MAX_CHARS)));
  const numbers = [
    ...named.map((title, at) => `${at + 1} ${title}`),
    ...(answers.length > BUTTONS_MAX ? ["…"] : []),
  ];
  return `with /allow ${shortId} and a number (${numbers.join(", ")}) or /deny ${shortId}`;
}

/** Writes the note in Markdown. */
function noteText(question: PermissionQuestion, askMs: number, isHidden: boolean): string {
  const { agentId, title, detail, scopes, form } = question;
  const lead =
    form === undefined ? `Agent ${agentId} asks for permission` : `A tool of agent ${agentId} has a question`;
  const wider = scopes.filter((scope) => scope !== "once").join(" or ");
  const within =
    askMs < 120_000 ? `${Math.round(askMs / 1000)} seconds` : `${Math.round(askMs / 60_000)} minutes`;
  const longer = wider === "" ? "" : ` Add ${wider} after the id of /allow to be asked less.`;
  const texts = `:\n${markdownQuote(title)}\n${detail === undefined ? "" : `${markdownQuote(detail)}\n`}\n`;
  return (
    `${lead}${isHidden ? ". " : texts}` +
    `An owner answers ${answerWords(question)} within ${within}.${longer}`
  );
}

/**
 * Writes the fields of an input as words. Names and texts that could be mistaken for other fields are quoted,
 * because the agent that asks wrote them.
 */
function detailOf(input: unknown): string {
  if (typeof input === "string") return input;
  if (!isObject(input)) return JSON.stringify(input);
  const plain = (text: unknown, isPlain: RegExp): string =>
    typeof text === "string" && isPlain.test(text) ? text : JSON.stringify(text);
  return Object.entries(input)
    .map(([name, value]) => `${plain(name, /^[\w-]+$/)}: ${plain(value, /^[^;\p{Cc}]+$/u)}`)
    .join("; ");
}

/**
 * Writes a note to the chat that the work came from, if it came from a chat, even if other chats have written
 * to the same sessions since.
 */
async function noteInChat(unit: Unit, question: PermissionQuestion, isHidden: boolean): Promise<void> {
  const asker = await getSession(unit.tx, question.sessionKey);
  const run = await getRun(unit.tx, question.runId);
  for (const { key } of asker === undefined ? [] : await spawnChainOf(unit.tx, asker)) {
    const session = await getSession(unit.tx, key);
    if (session === undefined) return;
    const route = placeOfRun(session, key === asker?.key ? run : undefined) ?? session.spawn?.route;
    if (route === undefined) continue;
    const text = noteText(question, question.expiresAt - question.askedAt, isHidden);
    const controls = { choices: choicesOf(question) };
    if (!isInHouse(route))
      await queueNote(unit, { sessionKey: key, route, text, about: "permission", controls });
    return;
  }
}

/** Returns the texts of a request, or a failure if its owner could not see all of them. */
function shownTexts({
  title,
  kind,
  rawInput,
}: PermissionRequest): Result<{ title: string; detail?: string }> {
  const detail = rawInput == null ? undefined : detailOf(rawInput);
  const texts = { title: title.toWellFormed(), ...optional({ detail: detail?.toWellFormed() }) };
  const max = kind === SAMPLING || kind === LABELS_KIND ? PROMPT_MAX_CHARS : SHOWN_MAX_CHARS;
  if (Object.values(texts).every((text) => visibleText(text).length <= max)) return ok(texts);
  if (kind === SAMPLING || kind === LABELS_KIND)
    return fail(
      "invalid_argument",
      `an owner has to see the whole request, and it has over ${max} characters`,
    );
  if (kind !== undefined && WRITING.includes(kind))
    return ok({ title: shorten(texts.title), ...optional({ detail: detail && shorten(detail) }) });
  const error = `an owner has to see the whole command, and it has over ${SHOWN_MAX_CHARS} characters`;
  return fail("approval_denied", error, { hint: "Write it to a file with write, then run the file." });
}

function shorten(text: string): string {
  const more = text.length - SHOWN_MAX_CHARS;
  return more <= 0 ? text : `${head(text, SHOWN_MAX_CHARS)}… (${more} more characters are not shown)`;
}

/** Stores a request. Fails if too many are open, or if its owner could not see all of it. */
export async function openPermission(
  unit: Unit,
  request: PermissionRequest,
): Promise<Result<PermissionQuestion>> {
  const { attempt, askMs, sessionKey, agentId, runId, kind, about, form, prompt } = request;
  const { now: askedAt } = unit;
  const shown = shownTexts(request);
  if (!shown.ok) return shown;
  await takeAdvisoryLock(unit.tx, "limits");
  const known = await openPermissions(unit.tx, askedAt);
  const ofSession = known.filter((one) => one.sessionKey === sessionKey);
  if (known.length >= OPEN_MAX || ofSession.length >= OPEN_OF_SESSION_MAX)
    return fail("approval_denied", "too many permission requests are open");
  const question = await insertPermission(unit.tx, {
    ...{ id: unit.newId(), sessionKey, agentId, runId, attempt, about, ...shown.value },
    ...optional({ kind, form, prompt }),
    scopes: request.scopes ?? ["once"],
    askedAt,
    expiresAt: askedAt + askMs,
  });
  await noteInChat(unit, question, request.isHidden === true);
  unit.publish({ kind: "permission", id: question.id, sessionKey, change: "asked", question });
  return ok(question);
}

/**
 * Deletes a request whose agent has received the decision. If this fails, or nobody decided in time, the row
 * stays, but it is not an open request, and it is deleted later. Returns false if it was deleted before.
 */
export async function closePermission(
  unit: Unit,
  { id, sessionKey }: Pick<PermissionQuestion, "id" | "sessionKey">,
): Promise<boolean> {
  const deleted = await deletePermission(unit.tx, id);
  if (deleted === "open") unit.publish({ kind: "permission", id, sessionKey, change: "settled" });
  return deleted !== "gone";
}

export interface PermissionAnswer extends Omit<PermissionAnswered, "content"> {
  /** Id of the request, or the beginning of the id. */
  readonly id: string;
  /** The answer to a form, as it was given. */
  readonly content?: Readonly<Record<string, unknown>> | undefined;
}

/** Returns the one item whose id is or begins with `id`. */
function byId<T extends { readonly id: string }>(all: readonly T[], id: string, what: string): Result<T> {
  const [found, ...others] = all.filter((one) => one.id === id || (id.length >= 4 && one.id.startsWith(id)));
  if (found !== undefined && others.length === 0) return ok(found);
  const shown = quoted(id, 80);
  return found === undefined
    ? fail("permission_not_found", `there is no ${what} ${shown}`, {
        hint: "It may have been answered or deleted, or have expired.",
      })
    : fail("permission_not_found", `${others.length + 1} ids of the kind ${what} begin with ${shown}`, {
        hint: "Give more of the id.",
      });
}

/**
 * Stores the command of an allowed request, so that its repetitions are not asked about. Returns the rule's
 * id, if it is one for longer than once.
 */
async function keepRule(
  unit: Unit,
  { id, agentId, sessionKey, runId }: PermissionQuestion,
  { scope, by }: PermissionAnswer,
): Promise<Result<string | undefined>> {
  const asked = scope === "once" ? undefined : await commandOf(unit.tx, id);
  if (asked === undefined || scope === "once") return ok(undefined);
  await takeAdvisoryLock(unit.tx, "limits");
  if ((await countRules(unit.tx)) >= RULES_MAX) {
    return fail("too_large", `${RULES_MAX} commands are allowed already`, {
      hint: "Delete some with: npx parley-gateway permissions forget",
    });
  }
  const { command, folder, files } = asked;
  const chainId = scope === "chain" ? (await getRun(unit.tx, runId))?.chainId : undefined;
  const made = { id: unit.newId(), createdAt: unit.now, createdBy: by, ...optional({ chainId }) };
  await insertRule(unit.tx, { ...made, agentId, sessionKey, scope, command, folder }, files);
  return ok(made.id);
}

export interface AnswerRights {
  covers(sessionKey: string): boolean;
  /** False: the person can't allow a command for all sessions of an agent. */
  readonly everySession: boolean;
}

/** Returns an open request of a session that the caller covers, by its id or the beginning of the id. */
export async function findPermission(
  unit: Unit,
  id: string,
  covers: AnswerRights["covers"],
): Promise<Result<PermissionQuestion>> {
  const open = (await openPermissions(unit.tx, unit.now)).filter((one) => covers(one.sessionKey));
  return byId(open, id, "open permission request");
}

/** The answer of another model than the agent's. */
const SAMPLED: readonly FormField[] = [
  { name: "text", title: "Text", type: "string", required: true, min: 1 },
  { name: "model", title: "Model", type: "string", required: true },
];

const NEEDS_FORM = "it has a form, which has to be filled in: in the inbox of the page, or with";

/** Returns the content to store with an answer, or the problem of the answer. */
function contentOf(
  { id, kind, form, scopes }: PermissionQuestion,
  { decision, scope, content }: PermissionAnswer,
): Result<PermissionAnswered["content"]> {
  if (decision === "allow" && form !== undefined && (scope === "once" || scopes.includes(scope))) {
    if (content !== undefined || form.fields.length === 0) return completeAnswer(form.fields, content ?? {});
    return fail("invalid_argument", `${NEEDS_FORM}: ${allowLine(shortPermissionId(id))}`);
  }
  if (content !== undefined && kind === SAMPLING && decision === "allow")
    return completeAnswer(SAMPLED, content);
  if (content !== undefined) return fail("invalid_argument", "this answer can't have content");
  const offered = decision === "allow" && scopes.length > 0 ? scopes : ["once" as const];
  if (offered.includes(scope)) return ok(undefined);
  return fail("invalid_argument", `this answer can't have the scope ${scope}, only: ${offered.join(", ")}`);
}

/** Answers an open request of a session that the caller covers (PD2). */
export async function answerPermission(
  unit: Unit,
  answer: PermissionAnswer,
  { covers, everySession }: AnswerRights,
): Promise<Result<AnsweredPermission>> {
  const { id, decision, scope, by } = answer;
  if (scope === "always" && !everySession) {
    const error = "a token for some sessions can't allow a command in all sessions of an agent";
    return fail("missing_scope", error, { hint: "Answer with the scope once or session." });
  }
  const found = await findPermission(unit, id, covers);
  if (!found.ok) return found;
  const question = found.value;
  if (question.rule !== undefined && decision === "allow" && !everySession)
    return fail("missing_scope", "a token for some sessions can't allow this: what it knows is outside");
  const content = contentOf(question, answer);
  if (!content.ok) return content;
  const kept = await keepRule(unit, question, answer);
  if (!kept.ok) return kept;
  const decided = { decision, scope, by, ...optional({ content: content.value }) };
  const isFirst = await decidePermission(unit.tx, question.id, { ...decided, atMs: unit.now });
  if (!isFirst) return byId<PermissionQuestion>([], id, "open permission request");
  const { sessionKey } = question;
  const given = { decision, scope };
  unit.publish({ kind: "permission", id: question.id, sessionKey, change: "settled", answer: given });
  return ok({ ...question, ...optional({ ruleId: kept.value }) });
}

/** Deletes a rule of a session that the caller covers. Its command is asked about again. */
export async function forgetRule(
  unit: Unit,
  id: string,
  covers: (sessionKey: string) => boolean,
): Promise<Result<PermissionRule>> {
  const rules = (await listRules(unit.tx)).filter(({ sessionKey }) => covers(sessionKey));
  const found = byId(rules, id, "allowed command");
  if (found.ok) await deleteRule(unit.tx, found.value.id);
  return found;
}

/**
 * Resolves with a person's decision. Undefined: nobody decided in time, the run or the call was aborted, or
 * nobody could be asked (PD1). `keepsSlot`: other work of the run may continue meanwhile.
 */
export async function askPermission(
  { engine }: { readonly engine: Pick<Engine, "commit"> },
  request: PermissionRequest,
  { wait, signal, log, keepsSlot }: { wait: RunWait; signal: AbortSignal; log: Log; keepsSlot: boolean },
): Promise<PermissionAnswered | undefined> {
  if (signal.aborted) return undefined;
  try {
    const opened = await engine.commit(async (unit) =>
      (await wait.holds(unit)) ? openPermission(unit, request) : undefined,
    );
    if (opened?.ok === false) log.warn({ why: opened.error }, "a permission request was not opened");
    if (!opened?.ok) return undefined;
    const question = opened.value;
    const decided = await wait.waitForDecision(question, signal, keepsSlot).finally(() => {
      // This write is not awaited, so that a stopped run ends without waiting for the store.
      const closed = engine.commit((unit) => closePermission(unit, question));
      closed.catch((error: unknown) =>
        log.debug({ err: error }, "a permission request could not be deleted"),
      );
    });
    return decided?.by === "" ? undefined : decided;
  } catch (error) {
    log.error({ err: error }, "a permission request failed and counts as denied");
    return undefined;
  }
}
