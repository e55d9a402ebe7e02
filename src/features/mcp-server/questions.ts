// Asks the person at an MCP client for the permissions that agents need while the client waits for them, and
// passes the forms of outside MCP servers on (elicitation), and their prompts to a client with a model of its
// own (sampling): in the stream of the call's answer in revisions before 2026-07-28, and as input that a task
// requires.
// EQ1: only a client whose token may answer permission requests is asked, and only about work that it waits
//      for: of the chain of its message, or of its own sub-agents.
// EQ2: the id of the question names the request, so the answer may come to any process. The first answer
//      counts, also if it comes from the page or a chat.

import { spawnChainOf } from "../../access/spawn-chain.ts";
import { createGate } from "../../access/token.ts";
import { fieldsOf, isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { schemaOfForm } from "../../core/rules/approval/form.ts";
import {
  asAnswerable,
  PERMISSION_SCOPES,
  type PermissionQuestion,
  type PermissionScope,
} from "../../core/shapes/permission.ts";
import { sentSoFar } from "../../flows/conversation/send.ts";
import { answerPermission, findPermission, type PermissionAnswer } from "../../flows/permission.ts";
import type { Caller } from "../../gateway/auth.ts";
import { needScope } from "../../gateway/dispatch.ts";
import { dataFrame } from "../../gateway/http/run-stream.ts";
import { findPrompt, openPermissions, SAMPLING } from "../../store/queries/permissions.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import type { McpDeps } from "./calls.ts";
import type { Askable, McpClient } from "./client.ts";

/** Ids of questions begin with one of these. The second one wants a form of an MCP server to be filled in. */
const PERMISSION_ID = "permission:";
const FORM_ID = "form:";
const DENY = "deny";
/** Maximum number of times that a call's client is asked one question, if its answers can't be used. */
const TIMES_ASKED_MAX = 3;
/** The code with which a client reports that its user refused a prompt. */
const REJECTED = -1;
/** The choices for each scope that a permission may have. */
const CHOICES: Readonly<Record<PermissionScope, string>> = {
  once: "allow once",
  chain: "allow in this chain",
  session: "allow in this session",
  always: "always allow",
};

type Rpc = Readonly<Record<string, unknown>>;

/** Reads the kinds of questions that a client takes from its capabilities. */
export function readAskable(capabilities: unknown): Askable {
  const { elicitation, sampling } = fieldsOf(capabilities);
  const forms = isObject(elicitation) && ("form" in elicitation || !("url" in elicitation));
  return { forms, samples: isObject(sampling) };
}

function mayAnswer(caller: Caller): boolean {
  return needScope(caller, "permissions.answer", "operator.admin").ok;
}

/** A tool call during which questions are asked. */
export interface AskingCall {
  readonly deps: McpDeps;
  readonly client: McpClient;
  readonly callId: string;
  readonly askable: Askable;
}

/** Returns whether the client waits for the work that asks (EQ1). */
async function waitsFor(
  { deps, client, callId }: AskingCall,
  question: PermissionQuestion,
): Promise<boolean> {
  const { db } = deps.engine.store;
  const { session: requester, caller } = client;
  if (!createGate(deps.settings, caller, "send")(question.sessionKey)) return false;
  const sent = await sentSoFar(deps, client, callId);
  const run = sent === undefined ? undefined : await getRun(db, question.runId);
  if (run !== undefined && run.chainId === sent?.run.chainId) return true;
  const asker = await getSession(db, question.sessionKey);
  return asker !== undefined && (await spawnChainOf(db, asker)).some(({ key }) => key === requester.key);
}

/** Returns a question as a request to the client, with its id. Undefined: the client does not take it. */
async function requestFor({ deps, client, askable }: AskingCall, question: PermissionQuestion) {
  const isPrompt = askable.samples && question.kind === SAMPLING;
  const prompt = isPrompt ? await findPrompt(deps.engine.store.db, question.id) : undefined;
  if (prompt === undefined) return askable.forms ? elicitationFor(question, client.caller) : undefined;
  const { system, messages, maxOutputTokens: maxTokens } = prompt;
  const params = {
    messages: messages.map(({ role, text }) => ({ role, content: { type: "text", text } })),
    ...optional({ systemPrompt: system || undefined }),
    maxTokens,
  };
  return { id: `${PERMISSION_ID}${question.id}`, method: "sampling/createMessage", params };
}

function elicitationFor(question: PermissionQuestion, { patterns }: Caller) {
  const { id, agentId, title, detail, scopes, form } = asAnswerable(question, patterns === undefined);
  const method = "elicitation/create";
  if (form !== undefined && form.url === undefined) {
    const message = `A tool of agent ${agentId} has a question. ${title}`;
    const params = { message, requestedSchema: schemaOfForm(form.fields) };
    return { id: `${FORM_ID}${id}`, method, params };
  }
  const choices = [...scopes.map((scope) => CHOICES[scope]), DENY];
  const decision = { type: "string", title: "Decision", enum: choices };
  const more = detail === undefined ? "" : `\n\n${detail}`;
  const message = `Agent ${agentId} asks for permission: ${title}${more}`;
  const requestedSchema = { type: "object", properties: { decision }, required: ["decision"] };
  return { id: `${PERMISSION_ID}${id}`, method, params: { message, requestedSchema } };
}

function withdrawnFrame(requestId: string): string {
  const params = { requestId, reason: "the request was answered or has ended" };
  return dataFrame({ jsonrpc: "2.0", method: "notifications/cancelled", params });
}

/** Returns the open questions of a call as requests to its client, by their ids. */
export async function questionsOf(call: AskingCall): Promise<Readonly<Record<string, object>>> {
  const { deps, client } = call;
  const { engine } = deps;
  const found: Record<string, object> = {};
  if (!mayAnswer(client.caller)) return found;
  for (const question of await openPermissions(engine.store.db, engine.now())) {
    const named = (await waitsFor(call, question)) ? await requestFor(call, question) : undefined;
    if (named === undefined) continue;
    const { id, ...request } = named;
    found[id] = request;
  }
  return found;
}

/** Adds the questions to the stream of a call's answer, if its client may answer them. */
export function withQuestions(response: Response, call: AskingCall): Response {
  const { deps, client } = call;
  const { body, status, headers } = response;
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (body === null || !isStream || !mayAnswer(client.caller)) return response;
  const { engine, world } = deps;
  const reader = body.getReader();
  /** The ids of the requests for each question. The last one is open. */
  const requestIds = new Map<string, string[]>();
  let isOver = false;
  let unsubscribe = (): void => {};
  const end = (): void => {
    isOver = true;
    unsubscribe();
  };
  const stream = new ReadableStream<Uint8Array>({
    start(to) {
      const put = (frame: string): void => {
        if (!isOver) to.enqueue(new TextEncoder().encode(frame));
      };
      const ask = async (id?: string, problem?: string): Promise<void> => {
        for (const question of await openPermissions(engine.store.db, engine.now())) {
          const isWanted = id === undefined || question.id === id;
          if (!isWanted || !(await waitsFor(call, question))) continue;
          const request = await requestFor(call, question);
          // An event can come while the open requests are read, so a request is marked in the same step.
          const before = requestIds.get(question.id) ?? [];
          const most = problem === undefined ? 1 : TIMES_ASKED_MAX;
          if (request === undefined || before.length >= most) continue;
          const { params } = request;
          const requestId = before.length === 0 ? request.id : `${request.id}:${before.length + 1}`;
          requestIds.set(question.id, [...before, requestId]);
          if (problem !== undefined && "message" in params)
            params.message = `Your answer was not used: ${problem}. ${params.message}`;
          put(dataFrame({ jsonrpc: "2.0", ...request, id: requestId }));
        }
      };
      const askSafely = (id?: string, problem?: string): void => {
        ask(id, problem).catch((error: unknown) =>
          world.log.warn({ err: error }, "could not ask an MCP client"),
        );
      };
      unsubscribe = engine.bus.subscribe((event) => {
        if (event.kind !== "permission") return;
        const requestId = requestIds.get(event.id)?.at(-1);
        if (event.change === "asked") askSafely(event.id);
        else if (requestId === undefined) return;
        else if (event.change === "refused") askSafely(event.id, event.problem);
        else put(withdrawnFrame(requestId));
      });
      askSafely();
    },
    async pull(to) {
      try {
        const { value } = await reader.read();
        if (value !== undefined) return to.enqueue(value);
        end();
        to.close();
      } catch (error) {
        end();
        to.error(error);
      }
    },
    cancel(reason) {
      end();
      return reader.cancel(reason);
    },
  });
  return new Response(stream, { status, headers });
}

/** Returns whether a message is a client's answer to a question. */
export function isAnswer({ method, id }: Rpc): boolean {
  return method === undefined && typeof id === "string" && /^(?:permission|form):/.test(id);
}

type Decision = Pick<PermissionAnswer, "decision" | "scope" | "content">;

/** Returns the decision in an answer. Undefined: the person decided nothing. */
function decisionIn({ id, result, error }: Rpc): Decision | undefined {
  const { action, content, role, model } = fieldsOf(result);
  if (fieldsOf(error).code === REJECTED) return { decision: "deny", scope: "once" };
  if (role === "assistant") {
    const blocks = (Array.isArray(content) ? content : [content]).map(fieldsOf);
    const text = blocks.flatMap((block) => (block.type === "text" ? String(block.text) : [])).join("\n");
    return { decision: "allow", scope: "once", content: { text, model } };
  }
  const { decision } = fieldsOf(content);
  const isForm = String(id).startsWith(FORM_ID);
  if (action === "decline" || (action === "accept" && !isForm && decision === DENY))
    return { decision: "deny", scope: "once" };
  if (action !== "accept") return undefined;
  if (isForm) return { decision: "allow", scope: "once", content: fieldsOf(content) };
  const scope = PERMISSION_SCOPES.find((one) => CHOICES[one] === decision);
  return scope && { decision: "allow", scope };
}

/**
 * Takes a client's answer to a question (EQ2). An answer that comes too late changes nothing. Returns the
 * problem of an answer that does not fit its question, which is asked again.
 */
export async function takeAnswer(
  { settings, engine }: McpDeps,
  caller: Caller,
  message: Rpc,
): Promise<string | undefined> {
  const decision = decisionIn(message);
  if (decision === undefined || !mayAnswer(caller)) return undefined;
  const [, id = ""] = String(message.id).split(":");
  const covers = createGate(settings, caller, "send");
  const rights = { covers, everySession: caller.patterns === undefined };
  return engine.commit(async (unit) => {
    const answered = await answerPermission(unit, { id, by: caller.id, ...decision }, rights);
    if (answered.ok) return undefined;
    const question = await findPermission(unit, id, covers);
    if (!question.ok) return undefined;
    const { error: problem } = answered;
    const { id: questionId, sessionKey } = question.value;
    unit.publish({ kind: "permission", id: questionId, sessionKey, change: "refused", problem });
    return problem;
  });
}
