// The scheduler's columns of the run table, its slots, and the waits, for both databases.

/** The oldest queued run of each lane that no run holds is ready. */
const HEADS = `
update runs set ready_at = accepted_at where state = 'queued'
  and not exists (select 1 from runs h where h.session_key = runs.session_key
    and h.state in ('running', 'waiting'))
  and not exists (select 1 from runs e where e.session_key = runs.session_key and e.state = 'queued'
    and e.lane_seq < runs.lane_seq);
`;

/** Slots are rows, and a ready run waits in the queue of its priority and agent. */
export const slotRows = (text: string, integer: string): string => `
alter table runs add column queue ${text} not null default '';
alter table runs add column ready_at ${integer};
alter table runs add column deaths ${integer} not null default 0;
alter table runs add column planned_stop ${integer} not null default 0;
update runs set queue = case when kind = 'append' then '-'
    when session_key like 'agent:%:subagent:%' then '2' || agent_id
    when flow_id is null then '0' || agent_id else '1' || agent_id end
  where ended_at is null;
create table slots (n ${integer} primary key, run_id ${text} unique);
create index runs_ready on runs (queue, ready_at, run_id) where ready_at is not null;
${HEADS}`;

/**
 * Lets the wait table hold the waits for jobs, which had a table of their own. Its rows stay, because a
 * process of an earlier version may still use them. The end of a run did not end its waits for jobs.
 */
export const jobWaitRows = (text: string): string => `
alter table waits add column kind ${text} not null default 'run';
alter table waits add column of_call ${text};
insert into waits (call_id, of_call, kind, waiter_run_id, waiter_session_key, target_run_id,
    target_session_key, state, deadline_at, owner)
  select call_id || ' ' || flow_id, call_id, 'job', waiter_run_id, waiter_session_key, flow_id,
    target_session_key, case when state = 'open' and exists (select 1 from runs r
      where r.run_id = waiter_run_id and r.ended_at is not null) then 'ended' else state end,
    deadline_at, owner from job_waits;
create index waits_of_call on waits (of_call) where of_call is not null;
create index waits_for_jobs on waits (waiter_run_id) where kind = 'job';
`;
