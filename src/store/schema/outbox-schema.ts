// Defines the timers of the outbox for both databases: the first pending delivery of each queue is a stored
// deadline, which triggers keep.

import { POSTGRES_TEXT as T } from "./definition.ts";

/**
 * Returns the queue of a delivery, which is the key of its timer: the route, and for events of programs also
 * the session. `row` is an alias with a dot. The cast lets the embedded database compare the key of a timer
 * with the index.
 */
export const queueKeySql = (row: string): string =>
  `cast(${row}route_key || case when ${row}kind = 'hook' then ' ' || ${row}session_key else '' end as text)`;

/**
 * Returns the kind of the timer of a delivery: its class, and who shares the places for it, which is an
 * account of a channel or a program. `json` casts a text to JSON.
 */
export const timerKindSql = (row: string, json: string): string => `(
  case when ${row}kind = 'hook' then 'hooks ' else 'texts ' end
  || coalesce(${row}route_json${json} ->> 'channel', '') || ' '
  || coalesce(${row}route_json${json} ->> case when ${row}kind = 'hook' then 'to' else 'accountId' end, ''))`;

/**
 * Returns the end of a query for the first pending row `d` of a queue. It names `settled_at` instead of the
 * state, because the index of states must not serve it, not even in a plan that was made while the table was
 * empty.
 */
export const firstSql = (queue: string): string => `from deliveries d
    where d.settled_at is null and ${queueKeySql("d.")} = ${queue} order by d.seq limit 1`;

const HAS_MOVED = "old.state <> new.state or old.next_attempt_at <> new.next_attempt_at";
const [PLACE, QUEUE] = [timerKindSql("new.", ""), queueKeySql("new.")];

const SQLITE = `
create trigger delivery_queued after insert on deliveries when new.settled_at is null begin
  insert into deadlines (kind, key, due_at) select ${PLACE}, ${QUEUE}, new.next_attempt_at
    where not exists (select 1 from deadlines where kind = ${PLACE} and key = ${QUEUE});
end;
create trigger delivery_moved after update of state, next_attempt_at on deliveries when ${HAS_MOVED} begin
  delete from deadlines where kind = ${PLACE} and key = ${QUEUE};
  insert into deadlines (kind, key, due_at) select ${PLACE}, ${QUEUE}, d.next_attempt_at ${firstSql(QUEUE)};
end;
`;

// The trigger locks the timer before it looks for the first delivery, so it sees each delivery that another
// transaction queues meanwhile.
const POSTGRES = `
create or replace function delivery_moved() returns trigger language plpgsql
set search_path from current as $$
declare
  place ${T} := ${timerKindSql("new.", "::json")};
  queue ${T} := ${QUEUE};
  first bigint;
  timer tid;
begin
  insert into deadlines (kind, key, due_at) values (place, queue, new.next_attempt_at)
    on conflict (kind, key) do update set due_at = deadlines.due_at returning ctid into timer;
  select d.next_attempt_at into first ${firstSql("queue")};
  if found then
    update deadlines set due_at = first where ctid = timer and due_at <> first;
  else
    delete from deadlines where ctid = timer;
  end if;
  return null;
end $$;
create or replace trigger delivery_queued after insert on deliveries for each row
  when (new.settled_at is null) execute function delivery_moved();
create or replace trigger delivery_moved after update of state, next_attempt_at on deliveries for each row
  when (${HAS_MOVED}) execute function delivery_moved();
`;

export const OUTBOX_TRIGGERS = { sqlite: SQLITE, postgres: POSTGRES };
