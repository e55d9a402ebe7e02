// Owns the programs of ACP agents and their turns. A session has at most one program, with one prompt at a
// time. Sessions of Parley are known here only by their keys.
// AC2: an aborted run ends at once. Its prompt is cancelled afterwards. A program that does not end the
//      prompt in time is killed. The session's next turn waits for this.
// AC3: a program that ends during a prompt ends the run with `error`; nothing is repeated.
// AC4: idle programs are kept for a while, up to a limit.

import { ABORTED, untilAborted } from "../../../agent/loop/abort.ts";
import type { TurnEnd } from "../../../agent/loop/loop.ts";
import { inputOf, outsidePrompt, writtenBy } from "../../../agent/loop/outside-prompt.ts";
import { optional } from "../../../core/optional.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import {
  type Entry,
  injectedMessage,
  openCalls,
  type PlacedCall,
  resultIdOf,
  toolCallsOf,
  ZERO_USAGE,
} from "../../../core/shapes/message.ts";
import { within } from "../../../world/pause.ts";
import type { Log, Timer, World } from "../../../world.ts";
import { type AcpConnection, type AskPermission, openAcp, type SessionTools } from "./connection.ts";
import { endOfTurn } from "./end.ts";
import { type AcpMemories, programMark } from "./memory.ts";
import type { AcpProgram } from "./process.ts";
import type { ReportEvent } from "./reports.ts";
import { AcpTurn, type TurnPort } from "./turn.ts";

/** How long a program may take to end a cancelled prompt. */
const CANCEL_GRACE_MS = 3_000;
/** Maximum number of programs of all sessions together. A further program is refused. */
const PROGRAMS_MAX = 64;
/** Maximum number of idle programs. */
const IDLE_MAX = 8;
const NO_TOOLS =
  "This agent has not connected to its session tools in time, and works without them. If it supports no " +
  "MCP servers, set runtime.sessionTools to false.";

export interface AcpTurnArgs extends Omit<TurnPort, "world"> {
  readonly sessionKey: string;
  readonly sessionId: string;
  /** Log of the run. Default: the gateway's log. */
  readonly log?: Log;
  readonly program: AcpProgram;
  /** Called when a program opens its session. Returns undefined if the program gets no session tools. */
  readonly sessionTools: () => SessionTools | undefined;
  readonly idleMs: number;
  readonly introduction: string;
  readonly context?: string;
  readonly entries: readonly Entry[];
  /** Number of the attempt, counted from 1. */
  readonly attempt: number;
  /** Context tokens of the session before this run. */
  readonly contextTokens: number;
  readonly ask: AskPermission;
  /** Gets the tool calls that the program reports, before their results are appended. */
  readonly onCall: (event: ReportEvent) => void;
  /**
   * Waits until the prompt may be sent. Called once the program is ready. If it throws, the turn does, and
   * the program gets nothing.
   */
  readonly mayAct: () => Promise<void>;
  readonly signal: AbortSignal;
}

interface Seat {
  readonly connection: AcpConnection;
  readonly mark: string;
  knownUpTo: string | undefined;
  cost: number;
  /** The last run whose prompt was sent to this program. */
  lastRunId: string | undefined;
}

/** The state of one session in this gateway process. */
interface SessionState {
  seat: Seat | undefined;
  /** Resolves when the running turn and its clean-up are done. The next turn waits for this. */
  busy: Promise<void>;
  turns: number;
  idle: Timer | undefined;
}

export interface AcpParts {
  readonly world: World;
  readonly memories: AcpMemories;
  readonly version: string;
  /** Called when a session's program has ended, so that its passes can be revoked. */
  closed?(sessionKey: string): void;
}

export class AcpAgents {
  readonly #parts: AcpParts;
  readonly #sessions = new Map<string, SessionState>();
  #closed = false;

  constructor(parts: AcpParts) {
    this.#parts = parts;
  }

  /** Runs one turn, unless an earlier attempt has already ended it. Errors of `append` are thrown. */
  async turn(args: AcpTurnArgs): Promise<TurnEnd> {
    const done = endBefore(args);
    if (done !== undefined) return done;
    for (const open of openCalls(writtenBy(args.entries))) await args.append(this.#makeLostResult(open));
    const place = this.#stateOf(args.sessionKey);
    const before = place.busy;
    const { promise, resolve } = Promise.withResolvers<void>();
    place.turns += 1;
    place.busy = before.then(() => promise);
    place.idle?.cancel();
    let cleanUp: Promise<void> = Promise.resolve();
    try {
      if ((await untilAborted(before, args.signal)) === ABORTED) {
        cleanUp = before;
        return describeAbort();
      }
      const taken = await this.#take(args, place);
      cleanUp = taken.cleanUp;
      return taken.end;
    } finally {
      void cleanUp.finally(() => {
        place.turns -= 1;
        resolve();
        this.#rest(args, place);
      });
    }
  }

  running(): string[] {
    return [...this.#sessions].filter(([, { seat }]) => seat !== undefined).map(([sessionKey]) => sessionKey);
  }

  #stateOf(sessionKey: string): SessionState {
    const known = this.#sessions.get(sessionKey);
    if (known !== undefined) return known;
    const place: SessionState = { seat: undefined, busy: Promise.resolve(), turns: 0, idle: undefined };
    this.#sessions.set(sessionKey, place);
    return place;
  }

  /** Returns the result "outcome unknown" for a call that an earlier attempt left open. */
  #makeLostResult({ call, ...place }: PlacedCall): Entry {
    const { clock } = this.#parts.world;
    const text = "outcome unknown: the gateway stopped while this call was under way";
    return {
      id: resultIdOf(place),
      role: "toolResult",
      toolCallId: call.id,
      toolName: call.name,
      content: [{ type: "text", text }],
      isError: true,
      timestamp: clock.now(),
    };
  }

  async #take(args: AcpTurnArgs, place: SessionState): Promise<{ end: TurnEnd; cleanUp: Promise<void> }> {
    const starting = this.#seat(args, place);
    const seat = await untilAborted(starting, args.signal);
    if (seat === ABORTED) return { end: describeAbort(), cleanUp: starting.then(() => {}) };
    if (!seat.ok) return { end: describeFailure(seat.error, args), cleanUp: Promise.resolve() };
    const ready = await untilAborted(this.#toolsListed(args, seat.value), args.signal);
    if (ready === ABORTED) return { end: describeAbort(), cleanUp: Promise.resolve() };
    if (!ready.ok) return { end: describeFailure(ready.error, args), cleanUp: Promise.resolve() };
    await args.mayAct();
    return this.#prompt(args, place, seat.value);
  }

  /** Waits, before a program's first prompt, until it has the session tools or the time limit is reached. */
  async #toolsListed(args: AcpTurnArgs, seat: Seat): Promise<Result<void>> {
    if (seat.lastRunId !== undefined) return ok(undefined);
    const listed = await seat.connection.toolsListed();
    if (!listed.ok) return listed;
    if (listed.value || args.signal.aborted) return ok(undefined);
    const { ids, clock, log } = this.#parts.world;
    (args.log ?? log).warn({ agentId: args.agentId }, NO_TOOLS);
    await args.append(injectedMessage(ids.orderedUuid(), NO_TOOLS, clock.now()));
    return ok(undefined);
  }

  /** Returns the session's running program, or starts one, which reopens its earlier session if it can. */
  async #seat(args: AcpTurnArgs, place: SessionState): Promise<Result<Seat>> {
    const mark = programMark(args.program.command, args.program.cwd);
    const { seat } = place;
    if (seat?.connection.running() && seat.connection.sessionId === args.sessionId) {
      return ok(seat);
    }
    await this.#unseat(args.sessionKey, place);
    if (this.#closed) return fail("shutting_down", "the gateway is stopping; send again in a moment");
    const running = [...this.#sessions.values()].filter((one) => one.seat !== undefined).length;
    if (running >= PROGRAMS_MAX) {
      return fail("run_failed", `${running} ACP agents are already running; try again when one has ended`);
    }
    const { memories, version } = this.#parts;
    const world = { ...this.#parts.world, log: args.log ?? this.#parts.world.log };
    const memory = await memories.read(args.sessionId, mark);
    const { sessionId, program, sessionTools, signal } = args;
    const known = memory === undefined ? {} : { remoteId: memory.remoteId };
    const opened = await openAcp({ world, version, sessionId, program, sessionTools, signal, ...known });
    if (!opened.ok) return opened;
    const connection = opened.value;
    const kept = memory !== undefined && connection.remoteId === memory.remoteId;
    const fresh: Seat = {
      connection,
      mark,
      lastRunId: undefined,
      knownUpTo: kept ? memory.knownUpTo : undefined,
      cost: kept ? (memory.cost ?? 0) : 0,
    };
    place.seat = fresh;
    if (this.#closed) {
      await this.#unseat(args.sessionKey, place);
      return fail("shutting_down", "the gateway is stopping; send again in a moment");
    }
    if (!kept) await this.#remember(args, fresh);
    return ok(fresh);
  }

  async #prompt(
    args: AcpTurnArgs,
    place: SessionState,
    seat: Seat,
  ): Promise<{ end: TurnEnd; cleanUp: Promise<void> }> {
    const { connection } = seat;
    const { signal, entries, runId } = args;
    const turn = new AcpTurn({ ...args, world: this.#parts.world });
    const prompt = outsidePrompt({
      entries,
      introduction: args.introduction,
      mayHaveBegun: args.attempt > 1 || seat.lastRunId === runId,
      takesImages: connection.takesImages,
      ...optional({ knownUpTo: seat.knownUpTo, context: args.context }),
    });
    seat.lastRunId = runId;
    const answered = connection.prompt(prompt, turn, args.ask, args.onCall);
    const input = inputOf(entries)?.id;
    // Even if the prompt fails, the agent has received the prompt's text.
    const told = answered.then(async (answer) => {
      if (input !== undefined) seat.knownUpTo = input;
      const cost = answer.ok ? (answer.value.totalCost ?? seat.cost) : seat.cost;
      const spent = Math.max(0, cost - seat.cost);
      seat.cost = cost;
      await this.#remember(args, seat);
      return { answer, spent };
    });
    const stopTurn = async (): Promise<void> => {
      turn.drop();
      // The program is killed if it does not end the prompt in time.
      const { clock } = this.#parts.world;
      await seat.connection.cancel();
      const done = told.then(() => "done");
      if ((await within(clock, CANCEL_GRACE_MS, done)) === undefined)
        await this.#unseat(args.sessionKey, place, seat, "kill");
    };
    let outcome: Awaited<typeof told> | typeof ABORTED;
    try {
      outcome = await Promise.race([untilAborted(told, signal), turn.failed]);
    } catch (error) {
      await stopTurn();
      throw error;
    }
    if (outcome === ABORTED || signal.aborted) return { end: describeAbort(), cleanUp: stopTurn() };
    const end = await endOfTurn(turn, outcome.answer, { ...args, spent: outcome.spent });
    return { end, cleanUp: Promise.resolve() };
  }

  async #remember({ sessionId, log }: AcpTurnArgs, seat: Seat): Promise<void> {
    const { knownUpTo, cost, mark: program } = seat;
    const known = optional({ knownUpTo });
    try {
      const memory = { remoteId: seat.connection.remoteId, program, cost, ...known };
      await this.#parts.memories.write(sessionId, memory);
    } catch (error) {
      // Not serious: the agent's next process then starts a new session, and gets a summary of the
      // conversation.
      (log ?? this.#parts.world.log).warn(
        { err: error },
        "the state of an ACP agent's session could not be stored",
      );
    }
  }

  async #unseat(sessionKey: string, place: SessionState, only = place.seat, how?: "kill"): Promise<void> {
    if (only === undefined || place.seat !== only) return;
    place.seat = undefined;
    if (how === "kill") only.connection.kill();
    await only.connection.close();
    this.#parts.closed?.(sessionKey);
  }

  /** Keeps the program for some time after a turn, if it still runs and no turn waits. */
  #rest(args: AcpTurnArgs, place: SessionState): void {
    const { sessionKey, idleMs } = args;
    const { clock } = this.#parts.world;
    if (place.turns > 0 || this.#closed) return;
    if (place.seat?.connection.running() !== true || idleMs === 0) {
      void this.#forget(sessionKey, place);
      return;
    }
    // Moves the session to the end of the map, so that the session that is unused for the longest time is
    // first.
    this.#sessions.delete(sessionKey);
    this.#sessions.set(sessionKey, place);
    place.idle = clock.after(idleMs, () => void this.#forget(sessionKey, place));
    const resting = [...this.#sessions].filter(([, one]) => one.turns === 0);
    for (const [key, one] of resting.slice(0, Math.max(0, resting.length - IDLE_MAX))) {
      void this.#forget(key, one);
    }
  }

  async #forget(sessionKey: string, place: SessionState): Promise<void> {
    if (place.turns > 0) return;
    place.idle?.cancel();
    const closing = this.#unseat(sessionKey, place);
    // A new turn waits until the old program has exited.
    place.busy = place.busy.then(() => closing);
    await closing;
    if (place.turns === 0 && place.seat === undefined && this.#sessions.get(sessionKey) === place) {
      this.#sessions.delete(sessionKey);
    }
  }

  /** Stops every program. Call it when no more turns can start. */
  async close(): Promise<void> {
    this.#closed = true;
    const places = [...this.#sessions];
    this.#sessions.clear();
    await Promise.all(
      places.map(async ([sessionKey, place]) => {
        place.idle?.cancel();
        await this.#unseat(sessionKey, place);
      }),
    );
  }
}

function describeAbort(): TurnEnd {
  return { kind: "aborted", usage: ZERO_USAGE };
}

function describeFailure(error: string, { agentId, contextTokens }: AcpTurnArgs): TurnEnd {
  const text = `agent "${agentId}": ${error}`;
  return { kind: "error", code: "run_failed", error: text, usage: ZERO_USAGE, contextTokens };
}

/** Returns the end of a turn that an earlier attempt finished without storing its end. */
function endBefore({ entries, contextTokens }: AcpTurnArgs): TurnEnd | undefined {
  const last = writtenBy(entries).at(-1);
  if (last?.role !== "assistant" || last.stopReason !== "stop" || toolCallsOf(last).length > 0) return;
  const text = last.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  return { kind: "ok", text, usage: last.usage, contextTokens };
}
