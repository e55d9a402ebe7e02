// Owns the table of failure codes: what each one means to a tool, to a protocol client and over HTTP.
// E1: a failure is a value; only a bug throws.
// E2: a code means the same at every door.

export type RpcCode =
  | "INVALID_REQUEST"
  | "UNAUTHORIZED"
  | "FORBIDDEN"
  | "NOT_FOUND"
  | "CONFLICT"
  | "SEND_DENIED"
  | "AGENT_TIMEOUT"
  | "UNAVAILABLE"
  | "RATE_LIMITED"
  | "NOT_PAIRED"
  | "NOT_LINKED";

interface CodeForms {
  readonly tool: "error" | "forbidden";
  readonly rpc: RpcCode;
  readonly http: number;
}

const form = (tool: CodeForms["tool"], rpc: RpcCode, http: number): CodeForms => ({ tool, rpc, http });

/** Every code that a caller can meet: what it means, and its form at each door. */
export const CODES = {
  /** A value is not what it has to be; the text says which one, and what would be right. */
  invalid_argument: form("error", "INVALID_REQUEST", 400),
  /** An argument or param of that name does not exist; the nearest one is named. */
  unknown_argument: form("error", "INVALID_REQUEST", 400),
  /** Not a session key; the valid forms are listed. */
  invalid_session_key: form("error", "INVALID_REQUEST", 400),
  /** There is no tool of that name, or none of an outside server that is connected. */
  unknown_tool: form("error", "NOT_FOUND", 404),
  /** There is no method of that name here. */
  unknown_method: form("error", "INVALID_REQUEST", 404),
  /** The session does not have this tool; the setting that withholds it is named. */
  tool_denied: form("forbidden", "FORBIDDEN", 403),
  /** No token, a wrong one, or a proof of a device that does not hold. */
  unauthorized: form("forbidden", "UNAUTHORIZED", 401),
  /** The token lacks a scope, or covers only some sessions where all are needed. */
  missing_scope: form("forbidden", "FORBIDDEN", 403),
  /** A browser page of an origin, or a Host header, that the gateway does not know. */
  origin_denied: form("forbidden", "FORBIDDEN", 403),
  /** No such session, or one that you may not see: the two are answered alike. */
  not_visible: form("forbidden", "FORBIDDEN", 403),
  /** A session of another agent, and `tools.agentToAgent` does not admit both sides. */
  agent_to_agent: form("forbidden", "FORBIDDEN", 403),
  /** This may not be spawned: agent, depth, sandbox, thread; the text names the rule. */
  spawn_denied: form("forbidden", "FORBIDDEN", 403),
  /** The session has `maxChildren` sub-agents that are not finished. */
  too_many_children: form("error", "UNAVAILABLE", 429),
  /** The send policy of the session, or `session.sendPolicy`, says no. */
  send_denied: form("forbidden", "SEND_DENIED", 403),
  /** The conversation has come to a limit of hops, runs, tokens or cost. */
  chain_limit: form("forbidden", "FORBIDDEN", 403),
  /** The model's answer passed a limit of its agent; what had come is kept. */
  answer_too_large: form("error", "UNAVAILABLE", 502),
  /** The agent has used its budget of the day (UTC); the run did not start. */
  budget_used: form("forbidden", "FORBIDDEN", 403),
  /** Waiting would close a circle of sessions that wait for each other; the circle is named. */
  wait_cycle: form("forbidden", "CONFLICT", 409),
  /** The two sessions are in a conversation: the reply itself is the message. */
  open_flow: form("forbidden", "CONFLICT", 409),
  /** There is no such session, told to those who would see it. */
  session_not_found: form("error", "NOT_FOUND", 404),
  /** The id is of a transcript from before a reset; the current one is in the details. */
  stale_session_id: form("error", "CONFLICT", 409),
  /** Several sessions have this label; their keys are named. */
  label_ambiguous: form("error", "CONFLICT", 409),
  /** No agent of that id is configured; those that are, are listed. */
  agent_not_found: form("error", "NOT_FOUND", 404),
  /** There is no such chain, or none that the token covers. */
  chain_not_found: form("error", "NOT_FOUND", 404),
  /** There is no such run, or none that you may see. */
  run_not_found: form("error", "NOT_FOUND", 404),
  /** There is no such message in this transcript or inbox. */
  message_not_found: form("error", "NOT_FOUND", 404),
  /** There is no such delivery, or none that the token covers. */
  delivery_not_found: form("error", "NOT_FOUND", 404),
  /** There is no such job, or none that the token covers. */
  cron_job_not_found: form("error", "NOT_FOUND", 404),
  /** A run of the job is under way. */
  cron_job_busy: form("error", "CONFLICT", 409),
  /** There are as many jobs as there may be. */
  too_many_jobs: form("error", "UNAVAILABLE", 429),
  /** The device is not paired (yet); its code is in the details. */
  not_paired: form("forbidden", "NOT_PAIRED", 403),
  /** No such node is paired, or none that the token covers. */
  node_not_found: form("error", "NOT_FOUND", 404),
  /** The node is not connected, or nodes are off here; nothing was asked. */
  node_unavailable: form("error", "UNAVAILABLE", 503),
  /** `nodes.allowCommands` or the node itself does not offer this command. */
  node_command_denied: form("forbidden", "FORBIDDEN", 403),
  /** The node gave no answer in time; it may have done it all the same. */
  node_timeout: form("error", "AGENT_TIMEOUT", 504),
  /** The node says that the command failed, or answered what is no answer. */
  node_failed: form("error", "UNAVAILABLE", 502),
  /** Two fields of the request name different sessions or agents. */
  session_mismatch: form("error", "CONFLICT", 409),
  /** Nobody asks for that (any more). */
  permission_not_found: form("error", "NOT_FOUND", 404),
  /** The session is archived: hidden from agents, and read-only until it is restored. */
  session_archived: form("error", "CONFLICT", 409),
  /** A main session cannot be deleted; it can be reset. */
  protected_session: form("error", "CONFLICT", 409),
  /** No model of that name can run here; valid ones are listed. */
  invalid_model: form("error", "INVALID_REQUEST", 400),
  /** Not a thinking level; the valid ones are listed. */
  invalid_thinking: form("error", "INVALID_REQUEST", 400),
  /** The key was used for another request, or by another token. */
  idempotency_conflict: form("error", "CONFLICT", 409),
  /** Only a failed delivery can be retried or dismissed. */
  delivery_state: form("error", "CONFLICT", 409),
  /** The path leads out of the workspace. */
  path_outside: form("forbidden", "FORBIDDEN", 403),
  /** There is no such file. */
  file_not_found: form("error", "NOT_FOUND", 404),
  /** The file is not what is needed: a folder, too large, no text, not the old text once. */
  file_problem: form("error", "CONFLICT", 409),
  /** The command was killed at its time limit. */
  exec_timeout: form("error", "AGENT_TIMEOUT", 504),
  /** The command could not start, or was killed at a limit; the text names it. */
  exec_failed: form("error", "UNAVAILABLE", 500),
  /** The session must run contained and no sandbox works here: it is never run bare. */
  sandbox_unavailable: form("error", "UNAVAILABLE", 503),
  /** The outside MCP server is not connected, or was not in time. */
  mcp_unavailable: form("error", "UNAVAILABLE", 503),
  /** The outside MCP server gave no answer in time. */
  mcp_timeout: form("error", "AGENT_TIMEOUT", 504),
  /** The outside MCP server answered with an error, or with what is no answer. */
  mcp_failed: form("error", "UNAVAILABLE", 502),
  /** The call was begun and its answer lost: whether it was done is not known. */
  outcome_unknown: form("error", "CONFLICT", 409),
  /** The configuration is wrong, or there is none to check. */
  invalid_config: form("error", "INVALID_REQUEST", 400),
  /** No such channel or account is set up; those that are, are listed. */
  channel_unknown: form("error", "NOT_LINKED", 400),
  /** The platform, or the program that speaks for it, refused or did not answer. */
  channel_failed: form("error", "UNAVAILABLE", 502),
  /** Given up by whoever asked. */
  cancelled: form("error", "INVALID_REQUEST", 400),
  /** Nobody asks to be let in under this code. */
  pairing_not_found: form("error", "NOT_FOUND", 404),
  /** As many messages wait for the session as may (`session.queueMax`). */
  queue_full: form("error", "UNAVAILABLE", 429),
  /** More bytes or characters than there may be; the most is named. */
  too_large: form("error", "INVALID_REQUEST", 413),
  /** Too many at once, or too often; wait and try again. */
  rate_limited: form("error", "RATE_LIMITED", 429),
  /** The gateway is starting or stopping; what was accepted is kept. */
  shutting_down: form("error", "UNAVAILABLE", 503),
  /** The store does not answer, or a port or file that is needed cannot be had. */
  store_unavailable: form("error", "UNAVAILABLE", 503),
  /** The run ended with an error: the model, or the program that is the agent. */
  run_failed: form("error", "UNAVAILABLE", 502),
  /** The gateway process died again and again while it executed the run; it is not tried again. */
  run_crashed: form("error", "UNAVAILABLE", 502),
  /** The run was ended at its time limit. */
  run_timeout: form("error", "AGENT_TIMEOUT", 504),
  /** The run was stopped, or its caller left before the answer. */
  run_aborted: form("error", "CONFLICT", 409),
  /** The run was ended by a reset of its session. */
  session_reset: form("error", "CONFLICT", 409),
  /** The run was ended because its session was deleted. */
  session_deleted: form("error", "CONFLICT", 409),
  /** A bug. The log has the reason under the reference that is given. */
  internal: form("error", "UNAVAILABLE", 500),
} as const satisfies Record<string, CodeForms>;

export type Code = keyof typeof CODES;

/** An expected failure. `error` says what was wrong, `hint` what to do next. */
export interface Failure {
  readonly ok: false;
  readonly code: Code;
  readonly error: string;
  readonly hint?: string;
  /** Machine-readable facts that belong to the failure: closest keys, limits, current ids. */
  readonly details?: Readonly<Record<string, unknown>>;
}

export type Result<T> = { readonly ok: true; readonly value: T } | Failure;

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function fail(
  code: Code,
  error: string,
  more: { hint?: string; details?: Record<string, unknown> } = {},
): Failure {
  return { ok: false, code, error, ...more };
}

/** A cursor that no page of this list gave out. */
export function badCursor(list: string): Failure {
  return fail("invalid_argument", `cursor is not one that ${list} gave out`, {
    hint: "Use nextCursor of the page before as it is, or leave cursor out for the first page.",
  });
}

/** The details that list what the caller may use instead. */
const CHOICES: readonly string[] = ["closest", "keys", "validModels", "allowedAgents"];

/** The details without the lists that the words give already: a model pays for each of them. */
function untold(details: Failure["details"] = {}, words: string): Record<string, unknown> {
  const isTold = (list: unknown): boolean =>
    Array.isArray(list) && list.every((name) => typeof name === "string" && words.includes(name));
  return Object.fromEntries(
    Object.entries(details).filter(([name, list]) => !(CHOICES.includes(name) && isTold(list))),
  );
}

/** The result that a tool gives for a failure: one JSON object, details flattened into it. */
export function toolFailure(failure: Failure): Record<string, unknown> {
  const { code, error, hint, details } = failure;
  const facts = untold(details, `${error} ${hint ?? ""}`);
  return { ...facts, status: CODES[code].tool, code, error, ...(hint === undefined ? {} : { hint }) };
}
