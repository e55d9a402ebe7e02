// Defines the tables of runs, of what follows from them, and of the usage that they cause.

import { sql } from "kysely";
import { id, integer, nullable, orElse, real, rowNumber, table, text, unique } from "./definition.ts";

const HELD = "state in ('running', 'waiting')";
const UNFINISHED = "state in ('queued', 'running', 'waiting')";

const NO_REQUEST = { request_text: "", round1_reply: null, latest_reply: null };

export const RUN_TABLES = {
  runs: table(
    {
      run_id: id,
      session_key: id,
      session_id: id,
      agent_id: id,
      lane_seq: integer,
      kind: id,
      state: id,
      input_json: text,
      chain_id: id,
      hop: integer,
      attempt: integer,
      /** Deaths of a process that executed only this run. */
      crashes: integer,
      owner: nullable(id),
      accepted_at: integer,
      started_at: nullable(integer),
      ended_at: nullable(integer),
      timeout_ms: integer,
      route_json: nullable(id),
      flow_id: nullable(id),
      flow_step: nullable(id),
      flow_turn: nullable(integer),
      parent_run_id: nullable(id),
      call_id: nullable(id),
      reply: nullable(text),
      code: nullable(id),
      error: nullable(text),
      usage_json: nullable(id),
      model: nullable(id),
      /** Tokens that an unfinished run has spent. Recorded only if a budget applies to the run. */
      spent_tokens: orElse(integer, 0),
      /** Cost in USD that an unfinished run has spent. */
      spent_cost: orElse(real, 0),
      /** Maximum number of tokens of the current model call. Recorded only if a budget applies to the run. */
      reserved_tokens: orElse(integer, 0),
      /** Maximum cost of the current model call, in USD. */
      reserved_cost: orElse(real, 0),
      /** The owner of the run's idempotency key. */
      asked_by: nullable(id),
      /** Time when the recipient's model first answered a message between sessions. */
      heard_at: nullable(integer),
      /** Time when an operator dismissed or retried the ended run. */
      dismissed_at: nullable(integer),
      /** Revision with the run's inputs. */
      revision: nullable(id),
      /** Queue in which the run waits for a slot (`core/rules/run-queue.ts`). */
      queue: orElse(id, ""),
      /**
       * When the run may take a slot: it is the head of an idle lane, or has waited and wants to continue.
       * Null: not now.
       */
      ready_at: nullable(integer),
      /** All deaths of processes that executed the run. */
      deaths: orElse(integer, 0),
      /** 1 if the process that executes the run is about to stop. */
      planned_stop: orElse(integer, 0),
      /** Time since which the client that asked for the run can't fetch its response. */
      forgotten_at: nullable(integer),
      /** See queries/runs/holds.ts. */
      hold: nullable(id),
      /** Time since which the run stands still, because a person holds it. */
      held_at: nullable(integer),
      /** Duration of earlier times in which the run stood still. */
      held_ms: orElse(integer, 0),
    },
    {
      key: ["run_id"],
      hasRowid: true,
      indexes: [
        `unique runs_one_writer (session_key) where ${HELD}`,
        "runs_in_lane (session_key, lane_seq)",
        "unique runs_by_call (call_id) where call_id is not null",
        "runs_of_flow (flow_id) where flow_id is not null",
        "runs_of_chain (chain_id)",
        "runs_of_parent (parent_run_id) where parent_run_id is not null",
        "runs_by_end (ended_at) where ended_at is not null",
        "runs_asked (session_key, asked_by) where asked_by is not null",
        "runs_ready (queue, ready_at, run_id) where ready_at is not null",
        "runs_begun (agent_id) where started_at is not null and ended_at is null",
      ],
      // Not partial, because SQLite does not use a partial index for `state in (?, ?)`.
      sqliteIndexes: [
        "runs_in_lane_by_state (session_key, state, lane_seq)",
        "runs_by_state (state, accepted_at)",
      ],
      postgresIndexes: [
        `runs_unfinished_in_lane (session_key, lane_seq) where ${UNFINISHED}`,
        `runs_unfinished (state, accepted_at) where ${UNFINISHED}`,
        `runs_held (owner) where ${HELD}`,
      ],
      // An input keeps who wrote it (`queries/runs/runs.ts`).
      blankedByQuery: ["input_json"],
      blanked: [{ of: "session_key", columns: { reply: null, error: null } }],
    },
  ),

  /** Permits to execute a run. */
  slots: table({ n: integer, run_id: nullable(unique(id)) }, { key: ["n"], hasRowid: true, isPassing: true }),

  /**
   * Waits of runs, and of other callers, for the end of a run or a job. While `state` is `open`, the row is
   * an edge of the wait graph.
   */
  waits: table(
    {
      /** Id of the tool call that waits. For a job, the id of the job's flow follows it. */
      call_id: id,
      waiter_run_id: id,
      waiter_session_key: id,
      /** Id of the run, or of the job's flow. */
      target_run_id: id,
      target_session_key: id,
      /** `open | ready | answered | ended | lost`, as in queries/runs/waits.ts. */
      state: id,
      deadline_at: integer,
      /** Process of a waiting caller that is not a run. */
      owner: nullable(id),
      /** `run | job`. */
      kind: orElse(id, "run"),
      /** Id of the tool call, if it waits for jobs: it has one row per job. */
      of_call: nullable(id),
    },
    {
      key: ["call_id"],
      hasRowid: true,
      indexes: [
        "waits_by_deadline (deadline_at)",
        "waits_of_call (of_call) where of_call is not null",
        "waits_for_jobs (waiter_run_id) where kind = 'job'",
      ],
      sqliteIndexes: [
        "waits_of_waiter (waiter_run_id, state)",
        "waits_for_target (target_run_id, state)",
        "waits_of_session (waiter_session_key, state)",
      ],
      postgresIndexes: [
        "waits_of_waiter (waiter_run_id) where state = 'open'",
        "waits_for_target (target_run_id) where state = 'open'",
        "waits_of_session (waiter_session_key) where state = 'open'",
        "waits_of_callers (owner) where state = 'open' and waiter_run_id = ''",
        // These waits end when the caller's process ends, also if their outcome was not sent yet.
        "waits_of_callers_left (owner) where state in ('open', 'ready') and waiter_run_id = ''",
      ],
    },
  ),

  /** Times at which a message in the inbox of an outside program was offered, read and answered. */
  inbox_marks: table(
    {
      run_id: id,
      session_key: id,
      session_id: id,
      offered_at: nullable(integer),
      in_turn_at: nullable(integer),
      ended_at: nullable(integer),
      /** `answered | declined | expired`. */
      outcome: nullable(id),
    },
    {
      key: ["run_id"],
      indexes: [
        "inbox_marks_open (session_key, run_id) where ended_at is null",
        "inbox_marks_unread (session_key, session_id) where in_turn_at is null",
      ],
    },
  ),

  /**
   * Conversations between two sessions, and jobs of sub-agents. A flow's row is inserted when the flow is
   * accepted.
   */
  flows: table(
    {
      flow_id: id,
      chain_id: id,
      requester_key: id,
      requester_session_id: id,
      requester_run_id: nullable(id),
      target_key: id,
      /** `open | ended`. */
      state: id,
      turns_max: integer,
      request_text: text,
      round1_reply: nullable(text),
      latest_reply: nullable(text),
      created_at: integer,
      ended_at: nullable(integer),
      end_reason: nullable(id),
      /** `send | spawn`. */
      kind: orElse(id, "send"),
      /** Outcome of a job, as `JobOutcome`. */
      outcome_json: nullable(text),
      /** The end of a conversation that its sender chose, as `ChosenEnd`. */
      chosen_end: nullable(id),
    },
    {
      key: ["flow_id"],
      hasRowid: true,
      indexes: [
        "flows_to_notify (target_key, chosen_end, state) where chosen_end is not null",
        "flows_of_run (requester_run_id) where requester_run_id is not null",
        "flows_of_chain (chain_id)",
        "flows_by_requester (requester_key)",
        "flows_by_target (target_key, kind, created_at)",
      ],
      sqliteIndexes: ["flows_of_requester (requester_key, state)", "flows_of_target (target_key, state)"],
      postgresIndexes: [
        "flows_of_requester (requester_key) where state = 'open'",
        "flows_of_target (target_key) where state = 'open'",
      ],
      blanked: [
        // A job that continues without its requester needs its texts.
        {
          of: "requester_key",
          when: sql`state = 'ended'`,
          columns: { ...NO_REQUEST, outcome_json: null },
        },
        // The outcome of a job belongs to its requester, which may still read it.
        { of: "target_key", columns: NO_REQUEST },
      ],
    },
  ),

  /** Resources that a chain of runs has used (I8). */
  chains: table(
    {
      chain_id: id,
      runs: integer,
      /** Key of the root session. */
      root_session_key: nullable(id),
      tokens: orElse(integer, 0),
      /** USD. */
      cost: orElse(real, 0),
      /** 1 after the root session was notified that the chain's budget is used up. */
      told: orElse(integer, 0),
      /** Time at which a run was accepted, usage added, or a call refused the last time. 0: unknown. */
      last_at: orElse(integer, 0),
      /**
       * 1 after a run of the chain has tried to send to another session or to spawn one, even if this was
       * refused.
       */
      crossed: orElse(integer, 0),
      /** 1 after a guest wrote in the chain (`RunInput.guest`). */
      guest: orElse(integer, 0),
      /** See `RunInput.tokenLimit`. */
      token_limit: nullable(integer),
      /** Labels of the texts of its runs, as `Labels`. */
      labels_json: nullable(id),
    },
    { key: ["chain_id"], indexes: ["chains_newest (crossed, last_at, chain_id)"] },
  ),

  /** Refused sends and spawns of runs. Kept for some days, so that the chain can show them. */
  refusals: table(
    {
      call_id: id,
      chain_id: id,
      run_id: id,
      from_key: id,
      /** Key of the target session, if the call contained a key or the session was found. */
      to_key: nullable(id),
      /** Target as it was written in the call. */
      named: nullable(text),
      tool: id,
      code: id,
      error: text,
      /** If a wait was refused because of a cycle: the session keys of the cycle, as JSON. */
      cycle_json: nullable(id),
      hop: integer,
      at: integer,
    },
    {
      key: ["call_id"],
      indexes: ["refusals_of_chain (chain_id, at)", "refusals_by_age (at)", "refusals_of_session (from_key)"],
      removed: { of: "from_key" },
    },
  ),

  /** Deadlines. They are stored as rows so that a restart loses none. */
  deadlines: table(
    {
      /** Kind of deadline; selects its handler. */
      kind: id,
      key: id,
      due_at: integer,
    },
    {
      key: ["kind", "key"],
      indexes: [
        "deadlines_by_date (due_at)",
        "deadlines_by_kind (kind, due_at)",
        "deadlines_of_files (substr(key, 41)) where kind = 'inbound_files'",
      ],
    },
  ),

  ledger: table(
    {
      seq: rowNumber,
      run_id: id,
      session_key: id,
      agent_id: id,
      provider: id,
      model: id,
      input: integer,
      output: integer,
      cache_read: integer,
      cache_write: integer,
      total_tokens: integer,
      cost: real,
      at: integer,
      /** Root session of the spawn tree. Null: unknown. */
      root_key: nullable(id),
      /** Chain of the run. Set when the run itself is pruned, until then null. */
      chain_id: nullable(id),
    },
    {
      indexes: [
        "ledger_of_session (session_key, seq)",
        "ledger_of_run (run_id)",
        "ledger_of_agent (agent_id, at)",
        "ledger_by_age (at)",
      ],
    },
  ),

  /** Sum of the ledger's rows of an agent and a UTC day, in up to 16 parts that grow independently. */
  agent_days: table(
    {
      agent_id: id,
      /** Start of the day, in ms since 1970. */
      day: integer,
      part: integer,
      tokens: integer,
      cost: real,
    },
    { key: ["agent_id", "day", "part"] },
  ),

  /** Answers to calls with an idempotency key. A repeated key gets the same answer, even after a restart. */
  idempotency: table(
    {
      /** Includes the owner of the key (`ownedKey`). */
      key: id,
      /** Owner of the key, a token or a device, as a hash. The token itself is never stored. */
      caller: id,
      method: id,
      params_hash: id,
      answer_json: text,
      created_at: integer,
      /** Process that still works on the answer. If it dies, `answer_json` becomes the answer. */
      begun_by: nullable(id),
    },
    {
      key: ["key"],
      hasRowid: true,
      indexes: ["idempotency_by_age (created_at)"],
      // An answer keeps its ids, because a repeated call gets it again (`queries/idempotency.ts`).
      blankedByQuery: ["answer_json"],
    },
  ),

  /** Parts of the inputs of runs that many runs share (`core/shapes/record/revision.ts`). */
  revisions: table(
    {
      hash: id,
      kind: id,
      body_json: text,
      created_at: integer,
      /** Time at which a run last ended that used the revision, or up to some hours before. */
      used_at: integer,
    },
    {
      key: ["hash"],
      hasRowid: true,
      indexes: ["revisions_by_use (used_at)"],
      // The instructions of the session go (`queries/runs/revisions.ts`). Other parts belong to the agent.
      blankedByQuery: ["body_json"],
    },
  ),
};
