// Converts runs to A2A tasks. Nothing about a task is stored apart from its run, so every process of a
// cluster can answer for it, also after a restart.

import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type Task,
  TaskState,
  type TaskStatus,
} from "@a2a-js/sdk";
import { optional } from "../../../core/optional.ts";
import { writePeerLabels } from "../../../core/rules/labels/peer-labels.ts";
import { isSilent } from "../../../core/rules/turn-rules.ts";
import { textOf } from "../../../core/shapes/message.ts";
import type { PermissionQuestion } from "../../../core/shapes/permission.ts";
import { isEnded, type Run, type RunState } from "../../../core/shapes/run.ts";
import { a2aContext } from "../../../core/shapes/session-key.ts";
import type { Redactor } from "../../../core/text/redact/redact.ts";
import { contentOfFile, filesOfRun } from "../../../store/queries/channels/sent-files.ts";
import { labelsOfChain } from "../../../store/queries/labels.ts";
import { readRun } from "../../../store/queries/transcripts/transcripts.ts";
import type { Db } from "../../../store/sql.ts";
import { LABELS_FIELD, USAGE_FIELD } from "../fields.ts";
import { callIdOf } from "./message.ts";
import { questionText } from "./questions.ts";

/** The state of a task for each state of its run. A run that waits for another agent is working. */
export const TASK_STATES: Readonly<Record<RunState, TaskState>> = {
  queued: TaskState.TASK_STATE_SUBMITTED,
  running: TaskState.TASK_STATE_WORKING,
  waiting: TaskState.TASK_STATE_WORKING,
  ok: TaskState.TASK_STATE_COMPLETED,
  error: TaskState.TASK_STATE_FAILED,
  timeout: TaskState.TASK_STATE_FAILED,
  aborted: TaskState.TASK_STATE_CANCELED,
};

/** How much of a task to return. */
export interface TaskScope {
  readonly artifacts: boolean;
  /** Maximum number of messages, the newest ones. Undefined: all. */
  readonly history?: number | undefined;
}

export interface TaskParts {
  readonly db: Db;
  readonly redactor: Redactor;
  /** The part of session keys that stands for the client. */
  readonly owner: string;
  /** The client, if it is a peer, which learns the labels of the answer. */
  readonly peer?: string;
  /** Returns the request that the task waits for and the client may answer. */
  question(run: Run): Promise<PermissionQuestion | undefined>;
}

const NOTHING = { metadata: undefined, extensions: [] };

function textPart(value: string): Part {
  const content = { $case: "text" as const, value };
  return { content, metadata: undefined, filename: "", mediaType: "text/plain" };
}

export function answerArtifact(runId: string, text: string): Artifact {
  return {
    artifactId: `${runId}-answer`,
    name: "answer",
    description: "",
    parts: [textPart(text)],
    ...NOTHING,
  };
}

export function contextOf(run: Run, owner: string): string {
  return a2aContext(run.sessionKey, owner) ?? "";
}

function messageOf(run: Run, owner: string, id: string, role: Role, text: string): Message {
  const place = { contextId: contextOf(run, owner), taskId: run.runId };
  return { messageId: id, ...place, role, parts: [textPart(text)], referenceTaskIds: [], ...NOTHING };
}

/** Returns the state of a task, and the reason of a failure or what the agent asks. */
async function taskStatus(run: Run, { owner, redactor, question }: TaskParts): Promise<TaskStatus> {
  const asked = isEnded(run.state) ? undefined : await question(run);
  if (asked !== undefined) {
    const message = messageOf(run, owner, asked.id, Role.ROLE_AGENT, questionText(asked));
    const { id, title, detail, scopes } = asked;
    const data = { permission: id, title, ...optional({ detail }), scopes };
    const content = { $case: "data" as const, value: data };
    const part = { content, metadata: undefined, filename: "", mediaType: "application/json" };
    return {
      state: TaskState.TASK_STATE_INPUT_REQUIRED,
      message: { ...message, parts: [...message.parts, part] },
      timestamp: new Date(asked.askedAt).toISOString(),
    };
  }
  const at = run.endedAt ?? run.startedAt ?? run.acceptedAt;
  const reason =
    isEnded(run.state) && run.state !== "ok"
      ? messageOf(
          run,
          owner,
          `${run.runId}-status`,
          Role.ROLE_AGENT,
          redactor.mask(run.error ?? `the run ended: ${run.state}`),
        )
      : undefined;
  return { state: TASK_STATES[run.state], message: reason, timestamp: new Date(at).toISOString() };
}

/** Returns the final answer of a run, without credentials. Undefined: none. */
async function answerOf({ state, reply }: Run, redactor: Redactor): Promise<string | undefined> {
  if (state !== "ok" || reply === undefined || isSilent(reply)) return undefined;
  return redactor.whole(reply);
}

/** Returns the files that the run sent to the people of its session, once it has ended. */
async function fileArtifacts(run: Run, db: Db): Promise<Artifact[]> {
  if (!isEnded(run.state)) return [];
  const artifacts: Artifact[] = [];
  for (const file of await filesOfRun(db, run)) {
    const value = Buffer.from((await contentOfFile(db, file.id)) ?? "", "base64");
    const content = { $case: "raw" as const, value };
    const part = { content, metadata: undefined, filename: file.name, mediaType: file.mimeType };
    const facts = { artifactId: file.id, name: file.name, description: file.caption };
    artifacts.push({ ...facts, parts: [part], ...NOTHING });
  }
  return artifacts;
}

async function artifactsOf(run: Run, { db, redactor }: TaskParts): Promise<Artifact[]> {
  const answer = await answerOf(run, redactor);
  const first = answer === undefined ? [] : [answerArtifact(run.runId, answer)];
  return [...first, ...(await fileArtifacts(run, db))];
}

/** Returns what the client and the agent said, without calls of tools and their results. */
async function historyOf(run: Run, { db, redactor, owner }: TaskParts, max?: number): Promise<Message[]> {
  if (max === 0) return [];
  const said = (await readRun(db, run.runId)).filter(
    (entry) => (entry.role === "user" || entry.role === "assistant") && textOf(entry) !== "",
  );
  const kept = max === undefined ? said : said.slice(-max);
  const asked = said.find(({ role }) => role === "user");
  // The run's message has the id that its client gave it.
  const given = run.callId?.slice(callIdOf(run.askedBy ?? "", run.agentId, "").length);
  const messages: Message[] = [];
  for (const entry of kept) {
    const role = entry.role === "user" ? Role.ROLE_USER : Role.ROLE_AGENT;
    const id = (entry === asked ? given : undefined) ?? entry.id;
    messages.push(messageOf(run, owner, id, role, await redactor.whole(textOf(entry))));
  }
  return messages;
}

async function factsOf({ usage, chainId }: Run, { db, peer }: TaskParts): Promise<Task["metadata"]> {
  const { input, output, cacheRead, cacheWrite } = usage;
  const labels =
    peer !== undefined ? { [LABELS_FIELD]: writePeerLabels(peer, await labelsOfChain(db, chainId)) } : {};
  return { [USAGE_FIELD]: { input, output, cacheRead, cacheWrite }, ...labels };
}

export async function taskOf(run: Run, parts: TaskParts, scope: TaskScope): Promise<Task> {
  return {
    id: run.runId,
    contextId: contextOf(run, parts.owner),
    status: await taskStatus(run, parts),
    artifacts: scope.artifacts ? await artifactsOf(run, parts) : [],
    history: await historyOf(run, parts, scope.history),
    metadata: isEnded(run.state) ? await factsOf(run, parts) : undefined,
  };
}
