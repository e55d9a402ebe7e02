// Owns the table of agents' permission requests. A row stays until its agent has read the decision. One that
// nobody answered in time stays for a week, so that people learn of it.
// A request is open until it is decided or expires. It is no longer open if its run has ended. A request that
// belongs to a tool call survives a crash; any other one ends with the attempt of its run.

import { fieldsOf, jsonOf, objectOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { NamedFiles } from "../../core/rules/approval/named-files.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import type {
  PermissionAnswered,
  PermissionDecision,
  PermissionQuestion,
  PermissionScope,
  ServerPrompt,
  ServerQuestion,
} from "../../core/shapes/permission.ts";
import { visibleText } from "../../core/text/safe-text.ts";
import { type RecordOf, recordsOf } from "../records.ts";
import { changesRows, type Db, isAmong, type Tx } from "../sql.ts";

/** A stored request. Unlike in a `PermissionQuestion`, its texts are as the agent wrote them. */
type StoredRequest = RecordOf<
  "permissions",
  {
    readonly decision?: PermissionDecision;
    readonly scope?: PermissionScope;
    readonly scopes?: readonly PermissionScope[];
  }
>;

const REQUESTS = recordsOf<StoredRequest>()("permissions", {
  key: ["id"],
  columns: [
    "session_key",
    "agent_id",
    "run_id",
    "attempt",
    "title",
    "kind",
    "detail",
    "asked_at",
    "expires_at",
    "decision",
    "decided_at",
    "decided_by",
    "call_id",
    "scopes_json",
    "digest",
    "folder",
    "scope",
  ],
});

const ONLY_A_SETTING = / is always$/;

/** The kind of request that passes on a question of an MCP server. */
export const ELICITATION = "elicitation";
/** The kind of request for a call of a run that is outside and private. */
export const LABELS_KIND = "labels";
/** The kind of request with which an MCP server asks for an answer of the agent's model. */
export const SAMPLING = "sampling";

function toQuestion(request: StoredRequest): PermissionQuestion {
  const { id, sessionKey, agentId, runId, kind, scopes = ["once"], askedAt, expiresAt } = request;
  const command = visibleText(request.title);
  const about = visibleText(request.detail ?? "");
  const folder = request.folder === undefined ? undefined : visibleText(request.folder);
  const { rule, labels } = (
    kind === LABELS_KIND ? fieldsOf(jsonOf(request.digest ?? "")) : {}
  ) as Partial<LabelsAsked>;
  const reason = ONLY_A_SETTING.test(about) ? undefined : about;
  const form =
    kind === ELICITATION ? (objectOf(jsonOf(request.digest ?? "")) as ServerQuestion | undefined) : undefined;
  return {
    ...{ id, sessionKey, agentId, runId, title: command, scopes, askedAt, expiresAt },
    ...optional({
      kind,
      form,
      rule,
      labels,
      detail: folder === undefined ? about || undefined : `folder: ${folder}; reason: ${about}`,
      asked: folder === undefined ? undefined : { command, folder, ...optional({ reason }) },
    }),
  };
}

/** Time for which an expired request is kept. */
const KEPT_MS = 7 * 86_400_000;
/** Decides about requests that expired. */
const BY_NOBODY = "";

/** The subject of a request. `callId`: the tool call, if it continues after a crash. */
export type AskedCommand = {
  readonly callId: string | undefined;
} & (
  | {
      readonly folder: string;
      /** The files that the command names, as they are when the owner is asked. */
      readonly files: NamedFiles;
    }
  | LabelsAsked
);

interface LabelsAsked {
  /** The rule that an answer for longer than once makes (core/rules/labels/labels.ts). */
  readonly rule: string;
  readonly labels: Labels;
}

export interface NewPermission extends Omit<PermissionQuestion, "asked"> {
  readonly attempt: number;
  readonly about?: AskedCommand | undefined;
  readonly prompt?: ServerPrompt;
}

/** Deletes requests that nobody needs: those that expired long ago, of earlier attempts, of ended runs. */
async function forgetPermissions(tx: Tx, { askedAt, runId, attempt }: NewPermission) {
  const requests = tx.deleteFrom("permissions");
  await requests.where("expires_at", "<=", askedAt - KEPT_MS).execute();
  const withoutCall = requests.where("call_id", "is", null);
  await withoutCall.where("run_id", "=", runId).where("attempt", "<", attempt).execute();
  await requests
    .where("call_id", "is not", null)
    .where("decided_by", "is distinct from", BY_NOBODY)
    .where(({ not, exists, selectFrom }) => {
      const run = selectFrom("runs as r").select("r.run_id").whereRef("r.run_id", "=", "permissions.run_id");
      return not(exists(run.where("r.ended_at", "is", null)));
    })
    .execute();
}

/** Stores a request, and deletes those that nobody needs. Returns the request as its owner sees it. */
export async function insertPermission(tx: Tx, asked: NewPermission): Promise<PermissionQuestion> {
  await forgetPermissions(tx, asked);
  const { about, form, prompt, ...request } = asked;
  const command = about !== undefined && "folder" in about ? about : undefined;
  const asks =
    about !== undefined && "rule" in about ? { rule: about.rule, labels: about.labels } : undefined;
  const kept = command?.files ?? asks ?? form ?? prompt;
  const row = {
    ...request,
    ...optional({
      callId: about?.callId,
      folder: command?.folder,
      digest: kept && JSON.stringify(kept),
    }),
  };
  await REQUESTS.insert(tx, row);
  return toQuestion(row);
}

/** Returns the open requests, oldest first. */
export async function openPermissions(db: Db, nowMs: number): Promise<PermissionQuestion[]> {
  const requests = REQUESTS.rows(db)
    .innerJoin("runs as r", "r.run_id", "permissions.run_id")
    .where("permissions.decision", "is", null)
    .where("permissions.expires_at", ">", nowMs)
    .where("r.ended_at", "is", null)
    .where((is) =>
      is.or([is("permissions.call_id", "is not", null), is("r.attempt", "=", is.ref("permissions.attempt"))]),
    )
    .orderBy("permissions.asked_at")
    .orderBy("permissions.id");
  return (await REQUESTS.all(requests)).map(toQuestion);
}

/** Returns the subject of the last request of each run that nobody answered in time. */
export async function unansweredRequests(
  db: Db,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const requests = await db
    .selectFrom("permissions")
    .select(["run_id", "title"])
    .where(isAmong(db, "run_id", runIds))
    .where("decided_by", "=", BY_NOBODY)
    .orderBy("asked_at")
    .execute();
  return new Map(requests.map(({ run_id, title }) => [run_id, visibleText(title)]));
}

/** Returns the prompt of a request to a model. */
export async function findPrompt(db: Db, id: string): Promise<ServerPrompt | undefined> {
  const { kind, digest = "" } = (await REQUESTS.find(db, { id })) ?? {};
  return kind === SAMPLING ? (objectOf(jsonOf(digest)) as ServerPrompt | undefined) : undefined;
}

/**
 * Stores the decision about a request. Returns false if the request was already decided or deleted. A
 * person who decides also knows of the earlier requests of the run that nobody answered.
 */
export async function decidePermission(
  tx: Tx,
  id: string,
  { decision, scope, by, content, atMs }: PermissionAnswered & { atMs: number },
): Promise<boolean> {
  const answer = optional({ digest: content && JSON.stringify(content) });
  const columns = REQUESTS.columns({ decision, scope, decidedAt: atMs, decidedBy: by, ...answer });
  const requests = tx.updateTable("permissions");
  await requests
    .set({ decided_by: by })
    .where("decided_by", "=", BY_NOBODY)
    .where("run_id", "in", (eb) =>
      eb.selectFrom("permissions as p").select("p.run_id").where("p.id", "=", id),
    )
    .execute();
  return changesRows(tx, requests.where("id", "=", id).where("decision", "is", null).set(columns));
}

/** Returns the decision about a request. Undefined: there is no decision yet. `gone`: the row was deleted. */
export async function decisionOf(db: Db, id: string): Promise<PermissionAnswered | "gone" | undefined> {
  const request = await REQUESTS.find(db, { id });
  if (request === undefined) return "gone";
  const { decision, scope = "once", decidedBy: by = "", kind, digest = "" } = request;
  const content = kind === ELICITATION || kind === SAMPLING ? objectOf(jsonOf(digest)) : undefined;
  return (
    decision && { decision, scope, by, ...optional({ content: content as PermissionAnswered["content"] }) }
  );
}

/**
 * Deletes a request, unless nobody answered it. Returns whether it was open or decided until now, or had been
 * deleted before.
 */
export async function deletePermission(tx: Tx, id: string): Promise<"open" | "decided" | "gone"> {
  const request = await REQUESTS.find(tx, { id });
  if (request === undefined) return "gone";
  if (request.decidedBy !== BY_NOBODY) await REQUESTS.remove(tx, { id });
  return request.decision === undefined ? "open" : "decided";
}

/** A request about a command, and the command as the agent wrote it. */
export interface StoredCommand {
  readonly question: PermissionQuestion;
  readonly command: string;
  readonly folder: string;
  readonly files: NamedFiles;
}

/** The folder of rules that are about no command. */
export const NO_FOLDER = "";

/** Reads the files of a command. Rows of earlier versions have none. */
export function readFiles(json: string): NamedFiles {
  const files = jsonOf(json);
  return Array.isArray(files) ? (files as NamedFiles) : [];
}

async function findCommand(db: Db, where: Partial<StoredRequest>): Promise<StoredCommand | undefined> {
  const request = await REQUESTS.find(db, where);
  if (request === undefined) return undefined;
  const question = toQuestion(request);
  if (question.rule !== undefined) return { question, command: question.rule, folder: NO_FOLDER, files: [] };
  if (request.folder === undefined) return undefined;
  const { title: command, folder, digest = "" } = request;
  return { question, command, folder, files: readFiles(digest) };
}

/** Returns the command that a request is about, or undefined if it is not about a command. */
export const commandOf = (db: Db, id: string) => findCommand(db, { id });

/** Returns the request of a tool call, decided or not, with its command. */
export const permissionOfCall = (db: Db, callId: string) => findCommand(db, { callId });

/** Returns the request of a tool call, decided or not. */
export async function requestOfCall(db: Db, callId: string): Promise<PermissionQuestion | undefined> {
  const request = await REQUESTS.find(db, { callId });
  return request && toQuestion(request);
}

/** Deletes the request of a tool call. */
export const deletePermissionOfCall = (tx: Tx, callId: string) => REQUESTS.remove(tx, { callId });
