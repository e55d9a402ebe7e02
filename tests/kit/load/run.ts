// Puts a load on several gateways: many WebSocket clients, many sessions with streamed answers, slow readers,
// and clients that disconnect and return. Returns figures without judging them.
// Each session has its own agent and token. One client for each session writes to it, and again when its run
// has ended; most others read one session each. Some of those stop reading for a while and must miss nothing;
// some disconnect, return, and read the history. A few read every session and stop reading until the gateway
// closes them.

import { dice } from "../dice.ts";
import type { Fleet } from "../process/fleet.ts";
import { type LoadOptions, onLoadFleet, RUN_MS, sleep } from "./ground.ts";
import { type Growth, growthOf, type MemorySample, memoryOf, processorSeconds } from "./memory.ts";
import type { ReaderTotals } from "./reader.ts";
import {
  Admin,
  comeAndGo,
  type Load,
  newTotals,
  OneReader,
  pauseNowAndThen,
  stopReading,
  Writer,
} from "./roles.ts";

const JOIN_AT_ONCE = 40;
const SLOW = 10;
const ROAMING_SHARE = 0.05;
const PAUSING_SHARE = 0.05;
const SAMPLE_MS = 1_000;
/** Close code of the gateway for a client that reads too slowly. */
const TOO_SLOW = 1013;
/**
 * On a slow machine, fewer events are sent, and it takes longer until a client that does not read is too far
 * behind. The load then continues until that, for at most this many times its seconds.
 */
const LONGEST = 4;

export interface LoadFigures {
  readonly runs: number;
  /** Number of sessions with a run, sampled every second after all sessions have begun. */
  readonly running: { readonly median: number; readonly least: number };
  readonly eventsPerSecond: number;
  /** Clients that stay connected, including those that pause their reading. */
  readonly staying: {
    readonly readers: number;
    /** Number of frames and run events whose sequence number was not the expected one. */
    readonly gaps: number;
    /** Number of run ends that arrived twice, and number of those that never arrived. */
    readonly twice: number;
    readonly missed: number;
    /** Number of these connections that the gateway closed. */
    readonly closed: number;
  };
  /** Clients that disconnect and return. */
  readonly roaming: { readonly connects: number; readonly gaps: number; readonly notInHistory: number };
  /** Close codes of the clients that stop reading, with the number of connections. */
  readonly slowCloses: Readonly<Record<string, number>>;
  /** Duration in ms of a request, sampled every second. */
  readonly askMs: { readonly p50: number; readonly p99: number };
  /**
   * Memory in MB, and the share of a processor, for each process. Empty if the system does not report them.
   */
  readonly processes: readonly {
    readonly rss: Growth;
    readonly anonymous: Growth;
    readonly processor: number;
  }[];
}

interface Cast {
  readonly admins: readonly Admin[];
  readonly writers: readonly Writer[];
  readonly watchers: readonly OneReader[];
  readonly pausing: readonly OneReader[];
  readonly roaming: readonly OneReader[];
  readonly totals: {
    readonly admins: ReaderTotals;
    readonly staying: ReaderTotals;
    readonly roaming: ReaderTotals;
    readonly slow: ReaderTotals;
  };
}

interface Samples {
  readonly running: number[];
  readonly askMs: number[];
  readonly memory: MemorySample[][];
}

async function inBatches<T>(list: readonly T[], work: (one: T) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < list.length; at += JOIN_AT_ONCE) {
    await Promise.all(list.slice(at, at + JOIN_AT_ONCE).map(work));
  }
}

/** Connects every client except those that stop reading, spread over sessions and processes. */
async function joinAll(options: LoadOptions, load: Load): Promise<Cast> {
  const { clients, sessions } = options;
  const { fleet } = load;
  const totals = { admins: newTotals(), staying: newTotals(), roaming: newTotals(), slow: newTotals() };
  const place = (number: number) => ({ session: number % sessions, at: number % fleet.size });
  const all = Array.from({ length: fleet.size }, (_, at) => at);
  const admins = all.map((at) => new Admin(fleet, at, totals.admins));
  const writers = Array.from({ length: sessions }, (_, at) => new Writer(load, place(at), totals.staying));
  const rest = Math.max(0, clients - sessions - SLOW);
  const roamers = Math.floor(clients * ROAMING_SHARE);
  const readers = Array.from({ length: rest }, (_, at) => {
    return new OneReader(
      load,
      place(at + load.luck.below(sessions)),
      at < roamers ? totals.roaming : totals.staying,
    );
  });
  const roaming = readers.slice(0, roamers);
  const pausing = readers.slice(roamers, roamers + Math.floor(clients * PAUSING_SHARE));
  const watchers = readers.slice(roamers);
  await inBatches([...writers, ...watchers, ...roaming, ...admins], (reader) => reader.join());
  return { admins, writers, watchers, pausing, roaming, totals };
}

/** Takes a sample every second until the load ends. */
async function sample(load: Load, admin: Admin, samples: Samples): Promise<void> {
  while (!load.over) {
    const from = performance.now();
    const { lanes } = (await admin.request("status")) as { lanes: { running: number; waiting: number } };
    samples.askMs.push(performance.now() - from);
    samples.running.push(lanes.running + lanes.waiting);
    const now = Array.from({ length: load.fleet.size }, (_, at) => memoryOf(load.fleet.pid(at)));
    now.forEach((one, at) => {
      if (one !== undefined) samples.memory[at]?.push(one);
    });
    await sleep(SAMPLE_MS);
  }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10;
}

function closesOf({ closes }: ReaderTotals): number {
  return [...closes.values()].reduce((sum, count) => sum + count, 0);
}

function figuresOf(load: Load, cast: Cast, samples: Samples, took: number, lost: number): LoadFigures {
  const { totals, writers, watchers, roaming } = cast;
  const staying = [...writers, ...watchers];
  const begun = samples.running.slice(Math.ceil(RUN_MS / SAMPLE_MS));
  const events = [totals.admins, totals.staying, totals.roaming, totals.slow];
  return {
    runs: load.sent.flat().filter((sent) => sent.endedAt !== undefined).length,
    running: { median: percentile(begun, 0.5), least: Math.min(...begun) },
    eventsPerSecond: Math.round((events.reduce((sum, one) => sum + one.events, 0) / took) * 1_000),
    staying: {
      readers: staying.length,
      gaps: totals.staying.gaps,
      twice: totals.staying.twice,
      missed: staying.reduce((sum, reader) => sum + reader.missed(load), 0),
      closed: closesOf(totals.staying),
    },
    roaming: {
      connects: roaming.length === 0 ? 0 : totals.roaming.connects,
      gaps: totals.roaming.gaps,
      notInHistory: lost,
    },
    slowCloses: Object.fromEntries(totals.slow.closes),
    askMs: { p50: percentile(samples.askMs, 0.5), p99: percentile(samples.askMs, 0.99) },
    processes: samples.memory.flatMap((of, at) => {
      if (of.length === 0) return [];
      const rss = growthOf(of.map((one) => one.rss));
      const anonymous = growthOf(of.map((one) => one.anonymous));
      const used = processorSeconds(load.fleet.pid(at));
      return [{ rss, anonymous, processor: Math.round((used / took) * 100_000) / 100 }];
    }),
  };
}

async function play(options: LoadOptions, fleet: Fleet): Promise<LoadFigures> {
  const { sessions, seconds, report = () => {} } = options;
  const luck = dice(`${options.seed} load`);
  const sent = Array.from({ length: sessions }, () => []);
  const load: Load = { luck, fleet, sent, resets: sent.map(() => 0), over: false };
  const cast = await joinAll(options, load);
  const [admin] = cast.admins;
  if (admin === undefined) throw new Error("no process");
  report(`${cast.writers.length + cast.watchers.length + cast.roaming.length + SLOW} clients`);
  const samples: Samples = { running: [], askMs: [], memory: Array.from({ length: fleet.size }, () => []) };
  const from = performance.now();
  const roles: Promise<unknown>[] = [
    ...cast.writers.map((writer) => writer.write(admin, luck.below(RUN_MS))),
    ...cast.pausing.map((reader) => pauseNowAndThen(load, reader)),
    ...Array.from({ length: SLOW }, (_, at) => {
      const presence = cast.admins[at % fleet.size] ?? admin;
      return stopReading(load, at % fleet.size, presence, cast.totals.slow);
    }),
  ];
  const roaming = cast.roaming.map((reader) => comeAndGo(load, reader));
  const sampling = sample(load, admin, samples);
  const failed = Promise.all([...roles, ...roaming, sampling]).then(() => undefined);
  const endLoad = async (): Promise<void> => {
    await sleep(seconds * 1_000);
    const longest = from + seconds * 1_000 * LONGEST;
    while (!cast.totals.slow.closes.has(TOO_SLOW) && performance.now() < longest) await sleep(SAMPLE_MS);
  };
  await Promise.race([failed, endLoad()]);
  load.over = true;
  await failed;
  const took = performance.now() - from;
  // Frames arrive in order. If a client gets the answer to this request, it has received everything before
  // it.
  const staying = [...cast.writers, ...cast.watchers];
  await Promise.all(staying.map((reader) => reader.request("health")));
  const lost = (await Promise.all(roaming)).reduce((sum, one) => sum + one, 0);
  const figures = figuresOf(load, cast, samples, took, lost);
  for (const reader of [...staying, ...cast.roaming, ...cast.admins]) reader.leave();
  return figures;
}

/** Runs a load for a number of seconds, and returns the figures. */
export function runLoad(options: LoadOptions): Promise<LoadFigures> {
  return onLoadFleet(options, (fleet) => play(options, fleet));
}
