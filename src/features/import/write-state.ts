// Writes scheduled jobs, paired people and paired nodes. One that is already here is never changed.

import { getPeer, putPeer } from "../../store/queries/channels/channel-peers.ts";
import type { Db, Tx } from "../../store/sql.ts";
import { type CronJob, JOBS_MAX } from "../cron/job.ts";
import { countJobs, getJob, putJob } from "../cron/store.ts";
import type { NodeRow } from "../nodes/node.ts";
import { getNode, putNode } from "../nodes/store.ts";
import type { TrustedSetting } from "./config/trust.ts";
import type { Remarks } from "./remarks.ts";
import type { ImportStore } from "./sessions/write-session.ts";
import type { SourcePerson, SourceState } from "./state.ts";

const SHOWN_MAX = 20;

/** How many of one kind were written, and how many were already here. */
export interface Written {
  readonly added: number;
  readonly unchanged: number;
}

export interface StateReport {
  readonly jobs: Written;
  readonly people: Written;
  readonly nodes: Written;
}

const NOTHING: Written = { added: 0, unchanged: 0 };
export const NOTHING_WRITTEN: StateReport = { jobs: NOTHING, people: NOTHING, nodes: NOTHING };

/** A right of the source's state that a person must accept. */
export interface Grant extends TrustedSetting {
  readonly people: readonly SourcePerson[];
  readonly nodes: readonly NodeRow[];
}

/** Returns the rights in a state: the paired people of each account, and each node. */
export function grantsOf({ people, nodes }: Pick<SourceState, "people" | "nodes">): Grant[] {
  const accounts = Map.groupBy(people, ({ channel, accountId }) => `${channel}.${accountId}`);
  const ofPeople = [...accounts].map(([account, members]): Grant => {
    const shown = members.slice(0, SHOWN_MAX).map(({ peerId }) => peerId);
    const more = members.length > SHOWN_MAX ? ` and ${members.length - SHOWN_MAX} more` : "";
    const text = `lets these people write to the account directly: ${shown.join(", ")}${more}`;
    return { name: `paired.${account}`, group: "people", text, people: members, nodes: [] };
  });
  const ofNodes = nodes.map((node): Grant => {
    const text = `lets the device ${node.name} offer commands to agents, and start runs`;
    return { name: `nodes.${node.id.slice(0, 12)}`, group: "nodes", text, people: [], nodes: [node] };
  });
  return [...ofPeople, ...ofNodes];
}

const isHere = {
  job: async (db: Db, { id }: CronJob) => (await getJob(db, id)) !== undefined,
  person: async (db: Db, person: SourcePerson) => (await getPeer(db, person)) !== undefined,
  node: async (db: Db, { id }: NodeRow) => (await getNode(db, id)) !== undefined,
};

/** Returns whether everything that a right gives is already here. */
async function isGiven({ people, nodes }: Grant, { db }: ImportStore): Promise<boolean> {
  if (db === undefined) return false;
  for (const person of people) if (!(await isHere.person(db, person))) return false;
  for (const node of nodes) if (!(await isHere.node(db, node))) return false;
  return true;
}

/** Returns the rights that are not here yet. */
export async function missingGrants(grants: readonly Grant[], store: ImportStore): Promise<Grant[]> {
  const given = await Promise.all(grants.map((grant) => isGiven(grant, store)));
  return grants.filter((_, at) => given[at] !== true);
}

/** Writes the items that are not here. `put` returns false if there is no room. */
async function writeNew<T>(
  items: readonly T[],
  { db, transaction }: ImportStore,
  isThere: (db: Db, item: T) => Promise<boolean>,
  put: (tx: Tx, item: T) => Promise<boolean>,
): Promise<Written> {
  let [added, unchanged] = [0, 0];
  for (const item of items) {
    if (db !== undefined && (await isThere(db, item))) {
      unchanged += 1;
      continue;
    }
    const write = async (tx: Tx) => !(await isThere(tx, item)) && (await put(tx, item));
    if (transaction === undefined || (await transaction(write))) added += 1;
  }
  return { added, unchanged };
}

/** Writes the jobs, and the people and nodes of the accepted rights. */
export async function writeState(
  jobs: readonly CronJob[],
  grants: readonly Grant[],
  store: ImportStore,
  remarks: Remarks,
): Promise<StateReport> {
  const people = grants.flatMap((grant) => grant.people);
  const nodes = grants.flatMap((grant) => grant.nodes);
  return {
    jobs: await writeNew(jobs, store, isHere.job, async (tx, job) => {
      const hasRoom = (await countJobs(tx)) < JOBS_MAX;
      if (hasRoom) await putJob(tx, job);
      else
        remarks.note(`jobs for which there is no room: a store has at most ${JOBS_MAX}`, job.name ?? job.id);
      return hasRoom;
    }),
    people: await writeNew(people, store, isHere.person, async (tx, { pairedAt, ...person }) => {
      const times = { askedAt: pairedAt, toldAt: pairedAt, decidedAt: pairedAt };
      await putPeer(tx, { ...person, ...times, state: "approved" });
      return true;
    }),
    nodes: await writeNew(nodes, store, isHere.node, async (tx, node) => {
      await putNode(tx, node);
      return true;
    }),
  };
}
