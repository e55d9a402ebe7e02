// Describes the answer of each tool in words: results depend on the session and have no schema.
// tests/reference.test.ts requires an entry for every tool, and valid codes.

import type { Code } from "../../../src/core/shapes/errors.ts";

interface ToolAnswers {
  /** Description of the result. */
  readonly gives: readonly (readonly [string, string])[];
  /** Besides those that every tool may answer. */
  readonly codes: readonly Code[];
  /** Sessions that have the tool, if not all whose filters allow it. */
  readonly who: string;
}

/** Codes that any tool may answer. */
export const EVERY_TOOL: readonly Code[] = [
  "invalid_argument",
  "unknown_argument",
  "unknown_tool",
  "tool_denied",
];

const NAMES_SESSION: readonly Code[] = [
  "not_visible",
  "agent_to_agent",
  "session_not_found",
  "invalid_session_key",
  "stale_session_id",
];
const FILE: readonly Code[] = [
  ...(["path_outside", "file_not_found", "file_problem", "too_large"] as const),
  ...(["sandbox_unavailable", "run_aborted"] as const),
];

const OF_SESSIONS = "Every session; sub-agents only if `tools.subagents.tools.allow` lists it.";
const NESTED =
  "Every session; sub-agents that may spawn (`maxSpawnDepth`); others if `tools.subagents.tools.allow` lists it.";
const WORKERS = "Every session, sub-agents too.";

export const TOOL_ANSWERS: Readonly<Record<string, ToolAnswers>> = {
  sessions_list: {
    gives: [
      ["count", "How many rows there are on this page."],
      [
        "sessions[]",
        "`key`, `kind`, `channel`, `agentId`, `sessionId`, `updatedAt`, and `state` (idle, queued, running, waiting) with `queuedRuns`.",
      ],
      [
        "sessions[] also",
        "`label?`, `displayName?`, `model`, `contextTokens`, `contextUsed`, `totalTokens`, `thinkingLevel?`, `verboseLevel?`, " +
          "`sendPolicy?`, `systemSent`, `abortedLastRun`.",
      ],
      [
        "sessions[] where",
        "`lastChannel?`, `lastTo?`, `lastAccountId?`, `deliveryContext?`: where its people are. `spawnedBy?`, `transcriptPath?`.",
      ],
      [
        "sessions[].messages",
        "With `messageLimit`: the last messages; `messagesTruncated: true` if some were cut.",
      ],
      ["nextCursor", "There are more."],
      ["visibility", "What `tools.sessions.visibility` comes to for this session."],
    ],
    codes: [],
    who: NESTED,
  },
  sessions_history: {
    gives: [
      ["sessionKey, sessionId", "Which transcript it is."],
      ["messages[]", "Oldest first; credentials masked, texts cut at `tools.history.maxTextChars`."],
      ["nextBefore", "There is something before: give it as `before`."],
      [
        "truncated, droppedMessages, bytes",
        "Whether a text was cut; messages that did not fit; the size of all.",
      ],
    ],
    codes: [...NAMES_SESSION, "message_not_found"],
    who: NESTED,
  },
  sessions_send: {
    gives: [
      ["status: ok", "`reply` of the other session, with `runId`, `sessionKey`, `delivery`."],
      [
        "status: accepted",
        "With `timeoutSeconds: 0`: it is kept and will run. Also for an answer that goes to a waiting sender: see `note`.",
      ],
      ["status: timeout", "Waiting ended; `state` and `queuedBehind` say where the run is. It goes on."],
      ["status: error", "The other run ended badly: its `code` and `error`, with `runId`."],
      ["status: forbidden", "It was refused, and nothing was enqueued; `code` names the rule."],
      ["delivery", "What becomes of it afterwards: `{status: pending | skipped, mode: announce | inbox}`."],
    ],
    codes: [
      ...NAMES_SESSION,
      ...(["label_ambiguous", "too_large", "send_denied", "wait_cycle", "open_flow"] as const),
      ...(["chain_limit", "queue_full", "session_archived", "run_failed", "run_timeout"] as const),
      ...(["run_aborted", "session_reset", "session_deleted", "budget_used"] as const),
    ],
    who: OF_SESSIONS,
  },
  sessions_spawn: {
    gives: [
      ["status: accepted", "`runId`, `childSessionKey` and the `model` that it really starts with."],
      ["withheldTools", "Tools that the child would have by its own rules, and lacks because you do."],
      ["attachments", "Where the files are, and of each `name`, `bytes`, `sha256`."],
      ["thread", "With `thread: true`: the place that was made or bound."],
    ],
    codes: [
      ...(["spawn_denied", "too_many_children", "agent_not_found", "invalid_model"] as const),
      ...(["invalid_thinking", "too_large", "path_outside", "file_problem", "chain_limit"] as const),
      ...(["channel_failed", "queue_full", "session_archived", "session_not_found"] as const),
      ...(["run_aborted", "shutting_down"] as const),
    ],
    who: "Every session; sub-agents only as deep as `agents.defaults.subagents.maxSpawnDepth` lets them.",
  },
  agents_list: {
    gives: [
      ["requester", "Who asks."],
      ["allowAny", "Whether any configured agent may be named."],
      ["agents[]", "`id`, `name?`, `model`, `runtime` (builtin, acp), `sandboxed`, `self`."],
    ],
    codes: [],
    who: NESTED,
  },
  session_status: {
    gives: [
      [
        "of a session",
        "`state`, `queuedRuns`, `runs`, `model`, `thinkingLevel`, `contextTokens`, `contextUsed`, `usage`, `cost`, `openFlows`, " +
          "`boundTo?`, `updatedAt`, `abortedLastRun`.",
      ],
      [
        "of a run",
        "`state`, `queuedBehind?`, `acceptedAt`, `startedAt?`, `endedAt?`, `model?`, `reply?`, `code?`, `error?`, " +
          "`takenBy?`, `usage`, `cost`, `chainId`, `hop`.",
      ],
    ],
    codes: [...NAMES_SESSION, "run_not_found"],
    who: OF_SESSIONS,
  },
  sessions_search: {
    gives: [
      ["count", "How many hits there are on this page."],
      ["hits[]", "The session, the message's id and time, and an excerpt; credentials masked."],
      ["nextCursor", "There are more."],
    ],
    codes: NAMES_SESSION,
    who: OF_SESSIONS,
  },
  subagents: {
    gives: [
      [
        "of list",
        "`count`, `more`, and `subagents[]`: `sessionKey`, `label?`, `agentId`, `state`, `finished`, `ended?`, `task`, " +
          "`runId?`, `runState?`, `totalTokens`.",
      ],
      [
        "of cancel",
        "`status: ok`, `cancelled` (their keys), `runIds` (what was ended). Nothing is announced.",
      ],
    ],
    codes: ["not_visible"],
    who: NESTED,
  },
  message: {
    gives: [
      [
        "status: accepted",
        "`deliveryId`, `channel`, `to`, `accountId?`, `threadId?`: it is in the outbox, and not yet delivered.",
      ],
    ],
    codes: ["too_large", "channel_unknown", "not_visible", "send_denied", "queue_full", "run_aborted"],
    who: "Where a channel is set up: every session; sub-agents only if `tools.subagents.tools.allow` lists it.",
  },
  read: {
    gives: [
      [
        "status: ok",
        "`path`, `text`, `fromLine`, `lines`, `totalLines`; of a picture `mimeType`, `bytes` and the picture.",
      ],
      ["truncated, note", "What was cut, and how to read on."],
    ],
    codes: FILE,
    who: WORKERS,
  },
  write: {
    gives: [["status: ok", "`path`, `bytes`, `created`: whether it is new."]],
    codes: FILE,
    who: WORKERS,
  },
  edit: {
    gives: [["status: ok", "`path`, `line`: where the new text begins."]],
    codes: FILE,
    who: WORKERS,
  },
  exec: {
    gives: [
      ["status: ok", "The command ended: `exitCode`, `signal?`."],
      ["output", "stdout and stderr together; `outputBytes` in all, `truncated`: the middle is left out."],
      ["durationMs", "How long it took."],
      ["note", "The workspace of a sandboxed session is full."],
    ],
    codes: ["too_large", "exec_timeout", "exec_failed", "sandbox_unavailable", "run_aborted"],
    who: WORKERS,
  },
  nodes: {
    gives: [
      ["of list", "`count`, `nodes[]`: `id`, `name`, `platform`, `connected`, `commands` that may be asked."],
      ["of describe", "The same of one, with `version`, `caps`, `notAllowed`, `sessionKey`, `lastSeenAt?`."],
      ["of invoke", "`status: ok`, `node`, `command`, `result`."],
    ],
    codes: [
      ...(["node_not_found", "node_unavailable", "node_command_denied", "node_timeout"] as const),
      ...(["node_failed", "outcome_unknown", "too_large", "rate_limited", "run_aborted"] as const),
    ],
    who: "Where a device is paired: every session, sub-agents too; sandboxed ones with `nodes.allowSandboxed`.",
  },
};
