// Defines the failure codes: the meaning of each, and its form for tools, protocol clients and HTTP.
// E1: a failure is a value; only a bug throws. A code has the same meaning for every caller.

import { optional } from "../optional.ts";

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

/**
 * Every code that a caller can receive, with its meaning, and its form in each interface: tool, protocol and
 * HTTP.
 */
export const CODES = {
  /** A value is invalid; the text names the argument and a correct value. */
  invalid_argument: form("error", "INVALID_REQUEST", 400),
  /** The argument or param does not exist; the closest name is suggested. */
  unknown_argument: form("error", "INVALID_REQUEST", 400),
  /** The text is not a session key. The error lists the valid forms. */
  invalid_session_key: form("error", "INVALID_REQUEST", 400),
  /** The tool does not exist, or its MCP server is not connected. */
  unknown_tool: form("error", "NOT_FOUND", 404),
  /** The method does not exist. */
  unknown_method: form("error", "INVALID_REQUEST", 404),
  /** The session does not have this tool; the text names the setting that withholds it. */
  tool_denied: form("forbidden", "FORBIDDEN", 403),
  /** The token is missing or wrong, or the signature of a device is invalid. */
  unauthorized: form("forbidden", "UNAUTHORIZED", 401),
  /** The other gateway has no peer with this key, or itself another key: pair again. */
  peer_unknown: form("forbidden", "UNAUTHORIZED", 401),
  /** The token lacks a scope, or covers only some sessions where all are needed. */
  missing_scope: form("forbidden", "FORBIDDEN", 403),
  /** The gateway does not accept the Origin or the Host header of the request. */
  origin_denied: form("forbidden", "FORBIDDEN", 403),
  /** The session does not exist, or you may not see it: both get the same answer. */
  not_visible: form("forbidden", "FORBIDDEN", 403),
  /** The session belongs to another agent, and `tools.agentToAgent` does not allow both agents. */
  agent_to_agent: form("forbidden", "FORBIDDEN", 403),
  /** A rule forbids this spawn: agent, depth, sandbox or thread; the text names the rule. */
  spawn_denied: form("forbidden", "FORBIDDEN", 403),
  /** The session has reached `maxChildren` unfinished sub-agents. */
  too_many_children: form("error", "UNAVAILABLE", 429),
  /** The send policy of the session, or `session.sendPolicy`, forbids the message. */
  send_denied: form("forbidden", "SEND_DENIED", 403),
  /** The conversation reached a limit of hops, runs, tokens or cost. */
  chain_limit: form("forbidden", "FORBIDDEN", 403),
  /** The model's answer exceeded a limit of its agent; the text received so far is kept. */
  answer_too_large: form("error", "UNAVAILABLE", 502),
  /** The provider of the model refused its key. */
  model_unauthorized: form("error", "UNAVAILABLE", 502),
  /** The agent has used its budget of the day (UTC); the run did not start. */
  budget_used: form("forbidden", "FORBIDDEN", 403),
  /** The wait would make sessions wait for each other in a circle; the error names them. */
  wait_cycle: form("forbidden", "CONFLICT", 409),
  /** The two sessions are in a conversation: reply instead of sending. */
  open_flow: form("forbidden", "CONFLICT", 409),
  /** The session does not exist. Only callers who would see it get this code. */
  session_not_found: form("error", "NOT_FOUND", 404),
  /** The id belongs to a transcript from before a reset; the details have the current id. */
  stale_session_id: form("error", "CONFLICT", 409),
  /** Several sessions have this label; the text lists their keys. */
  label_ambiguous: form("error", "CONFLICT", 409),
  /** No configured agent has this id. The error lists the configured agents. */
  agent_not_found: form("error", "NOT_FOUND", 404),
  /** The chain does not exist, or the token does not cover it. */
  chain_not_found: form("error", "NOT_FOUND", 404),
  /** The run does not exist, or you may not see it. */
  run_not_found: form("error", "NOT_FOUND", 404),
  /** The message does not exist in this transcript or inbox. */
  message_not_found: form("error", "NOT_FOUND", 404),
  /** The delivery does not exist, or the token does not cover it. */
  delivery_not_found: form("error", "NOT_FOUND", 404),
  /** The job does not exist, or the token does not cover it. */
  cron_job_not_found: form("error", "NOT_FOUND", 404),
  /** A run of the job is in progress. */
  cron_job_busy: form("error", "CONFLICT", 409),
  /** The limit of scheduled jobs is reached. */
  too_many_jobs: form("error", "UNAVAILABLE", 429),
  /** The device is not paired; the details have its pairing code. */
  not_paired: form("forbidden", "NOT_PAIRED", 403),
  /** The node is not paired, or the token does not cover it. */
  node_not_found: form("error", "NOT_FOUND", 404),
  /** The node is not connected, or nodes are switched off; nothing was sent. */
  node_unavailable: form("error", "UNAVAILABLE", 503),
  /** `nodes.allowCommands` or the node itself does not offer this command. */
  node_command_denied: form("forbidden", "FORBIDDEN", 403),
  /** The node did not answer in time; it may have executed the command. */
  node_timeout: form("error", "AGENT_TIMEOUT", 504),
  /** The node reported that the command failed, or sent an invalid answer. */
  node_failed: form("error", "UNAVAILABLE", 502),
  /** The peer cannot be reached, or refused the request. */
  peer_unavailable: form("error", "UNAVAILABLE", 503),
  /** Two fields of the request name different sessions or agents. */
  session_mismatch: form("error", "CONFLICT", 409),
  /** The permission request does not exist, or is no longer open. */
  permission_not_found: form("error", "NOT_FOUND", 404),
  /** An owner denied the command, or nobody approved it in time. The command did not run. */
  approval_denied: form("forbidden", "FORBIDDEN", 403),
  /** The session has read content from outside and private content, and no owner allowed the call. */
  label_denied: form("forbidden", "FORBIDDEN", 403),
  /** The session is archived: hidden from agents, and read-only until it is restored. */
  session_archived: form("error", "CONFLICT", 409),
  /** The session has unfinished work; stop it first. */
  session_busy: form("error", "CONFLICT", 409),
  /** A main session cannot be deleted or archived; it can be reset. */
  protected_session: form("error", "CONFLICT", 409),
  /** The model does not exist or cannot run here; the error lists valid ones. */
  invalid_model: form("error", "INVALID_REQUEST", 400),
  /** The thinking level is invalid; the error lists valid ones. */
  invalid_thinking: form("error", "INVALID_REQUEST", 400),
  /** The key was used for another request, or by another token. */
  idempotency_conflict: form("error", "CONFLICT", 409),
  /** Only a failed delivery can be retried or dismissed. */
  delivery_state: form("error", "CONFLICT", 409),
  /** The path leads out of the workspace. */
  path_outside: form("forbidden", "FORBIDDEN", 403),
  /** The file does not exist. */
  file_not_found: form("error", "NOT_FOUND", 404),
  /** The file is a folder, too large or not text, or does not contain the old text exactly once. */
  file_problem: form("error", "CONFLICT", 409),
  /** The command was killed at its time limit. */
  exec_timeout: form("error", "AGENT_TIMEOUT", 504),
  /** The command could not start, or was killed at a limit; the text names the limit. */
  exec_failed: form("error", "UNAVAILABLE", 500),
  /** The session must run in a sandbox, and no sandbox works on this machine. */
  sandbox_unavailable: form("error", "UNAVAILABLE", 503),
  /** The MCP server is not connected, or did not connect in time. */
  mcp_unavailable: form("error", "UNAVAILABLE", 503),
  /** The MCP server did not answer in time. */
  mcp_timeout: form("error", "AGENT_TIMEOUT", 504),
  /** The MCP server answered with an error, or with an invalid answer. */
  mcp_failed: form("error", "UNAVAILABLE", 502),
  /** The address leads to a private network, or is no HTTP address; nothing was sent. */
  address_denied: form("forbidden", "FORBIDDEN", 403),
  /** The page could not be read: no answer, an error of its server, or no text. */
  fetch_failed: form("error", "UNAVAILABLE", 502),
  /** The search provider rejected the request, or sent no valid answer in time. */
  search_failed: form("error", "UNAVAILABLE", 502),
  /** The call was started, but its answer was lost. The call may or may not have been executed. */
  outcome_unknown: form("error", "CONFLICT", 409),
  /** The configuration is invalid, or there is no configuration to check. */
  invalid_config: form("error", "INVALID_REQUEST", 400),
  /** The configuration file was changed since it was read. */
  config_changed: form("error", "CONFLICT", 409),
  /** The agent's memory was changed since it was read. */
  memory_changed: form("error", "CONFLICT", 409),
  /** The channel or account is not configured; the error lists the configured ones. */
  channel_unknown: form("error", "NOT_LINKED", 400),
  /** The platform, or the program that connects to it, refused or did not answer. */
  channel_failed: form("error", "UNAVAILABLE", 502),
  /** The caller cancelled the request. */
  cancelled: form("error", "INVALID_REQUEST", 400),
  /** No pairing request has this code, or no notified device this id. */
  pairing_not_found: form("error", "NOT_FOUND", 404),
  /** The session has reached its limit of waiting messages (`session.queueMax`). */
  queue_full: form("error", "UNAVAILABLE", 429),
  /** Too many bytes or characters; the text names the limit. */
  too_large: form("error", "INVALID_REQUEST", 413),
  /** Too many requests; wait and try again. */
  rate_limited: form("error", "RATE_LIMITED", 429),
  /** The gateway is starting or stopping; accepted work is kept. */
  shutting_down: form("error", "UNAVAILABLE", 503),
  /** The store does not answer, or a required port or file is unavailable. */
  store_unavailable: form("error", "UNAVAILABLE", 503),
  /** The run failed: an error of the model, or of the program that runs the agent. */
  run_failed: form("error", "UNAVAILABLE", 502),
  /** The gateway process died repeatedly while it executed the run; the run is not retried. */
  run_crashed: form("error", "UNAVAILABLE", 502),
  /** The run reached its time limit. */
  run_timeout: form("error", "AGENT_TIMEOUT", 504),
  /** The run was stopped, or its caller disconnected before the answer. */
  run_aborted: form("error", "CONFLICT", 409),
  /** A reset of its session stopped the run. */
  session_reset: form("error", "CONFLICT", 409),
  /** The run was stopped because its session was deleted. */
  session_deleted: form("error", "CONFLICT", 409),
  /** A bug. The log has the cause under the given reference. */
  internal: form("error", "UNAVAILABLE", 500),
} as const satisfies Record<string, CodeForms>;

export type Code = keyof typeof CODES;

/** An expected failure. `error` says what is wrong; `hint` says what to do. */
export interface Failure {
  readonly ok: false;
  readonly code: Code;
  readonly error: string;
  readonly hint?: string;
  /** Machine-readable facts about the failure: closest keys, limits, current ids. */
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

/** Builds the failure of a wait in a circle. Each reader gets the names as it may see them. */
export function describeCycle(cycle: readonly string[]): Failure {
  return fail("wait_cycle", `waiting would close a cycle: ${cycle.join(" -> ")}`, { details: { cycle } });
}

/** Builds the failure for a cursor that this list has not returned. */
export function badCursor(list: string): Failure {
  return fail("invalid_argument", `cursor was not returned by ${list}`, {
    hint: "Use nextCursor of the previous page unchanged, or omit cursor for the first page.",
  });
}

/** Fields of `details` that list valid alternatives. */
const CHOICES: readonly string[] = ["closest", "keys", "validModels", "allowedAgents"];

/** Result of a tool for a failure: the details of the failure, and these fields. */
type FailedResult = Record<string, unknown> &
  Pick<Failure, "code" | "error" | "hint"> & { readonly status: CodeForms["tool"] };

/** Builds the result of a tool for a failure: one JSON object that includes the details. */
export function toolFailure(failure: Failure): FailedResult {
  const { code, error, hint, details } = failure;
  const words = `${error} ${hint ?? ""}`;
  const isInWords = (list: unknown): boolean =>
    Array.isArray(list) && list.every((one) => typeof one === "string" && words.includes(one));
  // Leaves out each list named in `CHOICES` whose values are in the text, because a repetition costs tokens.
  const facts = Object.entries(details ?? {}).filter(
    ([name, list]) => !CHOICES.includes(name) || !isInWords(list),
  );
  return { ...Object.fromEntries(facts), status: CODES[code].tool, code, error, ...optional({ hint }) };
}
