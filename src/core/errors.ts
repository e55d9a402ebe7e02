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

/** Every code that a caller can meet, with its form at each door. */
export const CODES = {
  invalid_argument: form("error", "INVALID_REQUEST", 400),
  unknown_argument: form("error", "INVALID_REQUEST", 400),
  invalid_session_key: form("error", "INVALID_REQUEST", 400),
  unknown_tool: form("error", "NOT_FOUND", 404),
  unknown_method: form("error", "INVALID_REQUEST", 404),
  tool_denied: form("forbidden", "FORBIDDEN", 403),
  unauthorized: form("forbidden", "UNAUTHORIZED", 401),
  missing_scope: form("forbidden", "FORBIDDEN", 403),
  origin_denied: form("forbidden", "FORBIDDEN", 403),
  not_visible: form("forbidden", "FORBIDDEN", 403),
  agent_to_agent: form("forbidden", "FORBIDDEN", 403),
  spawn_denied: form("forbidden", "FORBIDDEN", 403),
  too_many_children: form("error", "UNAVAILABLE", 429),
  send_denied: form("forbidden", "SEND_DENIED", 403),
  chain_limit: form("forbidden", "FORBIDDEN", 403),
  budget_used: form("forbidden", "FORBIDDEN", 403),
  wait_cycle: form("forbidden", "CONFLICT", 409),
  open_flow: form("forbidden", "CONFLICT", 409),
  session_not_found: form("error", "NOT_FOUND", 404),
  stale_session_id: form("error", "CONFLICT", 409),
  label_ambiguous: form("error", "CONFLICT", 409),
  agent_not_found: form("error", "NOT_FOUND", 404),
  chain_not_found: form("error", "NOT_FOUND", 404),
  run_not_found: form("error", "NOT_FOUND", 404),
  message_not_found: form("error", "NOT_FOUND", 404),
  delivery_not_found: form("error", "NOT_FOUND", 404),
  cron_job_not_found: form("error", "NOT_FOUND", 404),
  cron_job_busy: form("error", "CONFLICT", 409),
  too_many_jobs: form("error", "UNAVAILABLE", 429),
  not_paired: form("forbidden", "NOT_PAIRED", 403),
  node_not_found: form("error", "NOT_FOUND", 404),
  node_unavailable: form("error", "UNAVAILABLE", 503),
  node_command_denied: form("forbidden", "FORBIDDEN", 403),
  node_timeout: form("error", "AGENT_TIMEOUT", 504),
  node_failed: form("error", "UNAVAILABLE", 502),
  session_mismatch: form("error", "CONFLICT", 409),
  permission_not_found: form("error", "NOT_FOUND", 404),
  session_archived: form("error", "CONFLICT", 409),
  protected_session: form("error", "CONFLICT", 409),
  invalid_model: form("error", "INVALID_REQUEST", 400),
  invalid_thinking: form("error", "INVALID_REQUEST", 400),
  idempotency_conflict: form("error", "CONFLICT", 409),
  delivery_state: form("error", "CONFLICT", 409),
  path_outside: form("forbidden", "FORBIDDEN", 403),
  file_not_found: form("error", "NOT_FOUND", 404),
  file_problem: form("error", "CONFLICT", 409),
  exec_timeout: form("error", "AGENT_TIMEOUT", 504),
  exec_failed: form("error", "UNAVAILABLE", 500),
  sandbox_unavailable: form("error", "UNAVAILABLE", 503),
  mcp_unavailable: form("error", "UNAVAILABLE", 503),
  mcp_timeout: form("error", "AGENT_TIMEOUT", 504),
  mcp_failed: form("error", "UNAVAILABLE", 502),
  outcome_unknown: form("error", "CONFLICT", 409),
  invalid_config: form("error", "INVALID_REQUEST", 400),
  channel_unknown: form("error", "NOT_LINKED", 400),
  channel_failed: form("error", "UNAVAILABLE", 502),
  cancelled: form("error", "INVALID_REQUEST", 400),
  pairing_not_found: form("error", "NOT_FOUND", 404),
  queue_full: form("error", "UNAVAILABLE", 429),
  too_large: form("error", "INVALID_REQUEST", 413),
  rate_limited: form("error", "RATE_LIMITED", 429),
  shutting_down: form("error", "UNAVAILABLE", 503),
  store_unavailable: form("error", "UNAVAILABLE", 503),
  run_failed: form("error", "UNAVAILABLE", 502),
  run_timeout: form("error", "AGENT_TIMEOUT", 504),
  run_aborted: form("error", "CONFLICT", 409),
  session_reset: form("error", "CONFLICT", 409),
  session_deleted: form("error", "CONFLICT", 409),
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

/** The result that a tool gives for a failure: one JSON object, details flattened into it. */
export function toolFailure(failure: Failure): Record<string, unknown> {
  const { code, error, hint, details } = failure;
  return { ...details, status: CODES[code].tool, code, error, ...(hint === undefined ? {} : { hint }) };
}
