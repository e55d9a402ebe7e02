// Owns the waits of callers that are not runs: clients and operators. Such a caller does not survive a crash,
// so its wait ends with the process.
// CW1: a caller that confirms its answers gets either the answer or a notice in its session. Whether the
//      answer reached it is recorded until the store has the record, or the process stops; then the next
//      start, or another process, ends the wait, and the notice follows.
// CW2: a wait that fails counts as lost, and never as answered.

import { ok, type Result } from "../../core/shapes/errors.ts";
import { isEnded } from "../../core/shapes/run.ts";
import { StoreProblem } from "../../store/problems.ts";
import { giveUpCallerJobWaits, giveUpJobWaits, jobWaitsOfCall } from "../../store/queries/runs/job-waits.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { confirmAnswer, giveUpCallerWaits, loseAnswer } from "../../store/queries/runs/waits.ts";
import type { World } from "../../world.ts";
import type { Acceptor, Successors } from "../run/finish.ts";
import { CLIENT_TRIES_MAX, logRetry, throughDoubt, untilStored } from "../run/until-stored.ts";
import type { Unit } from "../unit.ts";
import {
  answeredBefore,
  type GaveUp,
  type JobsWaitEnd,
  type JobsWaitRequest,
  openJobsWait,
  openWait,
  type SettleParts,
  settleJobsWait,
  settleWait,
  type WaitEnd,
  type WaitRequest,
} from "./waits.ts";

interface CallerWaitParts extends SettleParts {
  readonly world: World;
  /** The process with which the waits end. */
  readonly processId: string;
  readonly acceptor: Acceptor;
  readonly successors: Pick<Successors, "answerLost">;
}

/** A call that waits for jobs. */
interface JobsCall {
  readonly callId: string;
  readonly until: "all" | "any";
  readonly signal: AbortSignal;
}

export class CallerWaits {
  readonly #parts: CallerWaitParts;
  readonly #stop = new AbortController();

  constructor(parts: CallerWaitParts) {
    this.#parts = parts;
  }

  /**
   * Records the wait of a caller. `clientKey`: the session of a client that calls `confirm` or `lose` for
   * each of its calls; if that session is external, the wait adds an edge to the wait graph.
   */
  open(unit: Unit, request: WaitRequest, clientKey = ""): Promise<Result<unknown>> {
    return openWait(unit, this.#waiter(clientKey), request);
  }

  /**
   * Records the wait of a caller for jobs. `clientKey` is that of `open`. If the answer to the first commit
   * was lost, a repeated one finds the wait.
   */
  async openJobs(unit: Unit, request: JobsWaitRequest, clientKey = ""): Promise<Result<void>> {
    const known = await jobWaitsOfCall(unit.tx, request.callId);
    return known.length > 0 ? ok(undefined) : openJobsWait(unit, this.#waiter(clientKey), request);
  }

  /**
   * Waits for jobs after `open` has recorded the wait. The results also go to the session, so none can be
   * lost. If this fails, ends the wait, which `open` may have recorded.
   */
  async duringJobs(
    { callId, until, signal }: JobsCall,
    open: () => Promise<Result<void>>,
  ): Promise<Result<JobsWaitEnd>> {
    const { world } = this.#parts;
    try {
      const opened = await throughDoubt(world, signal, open);
      if (!opened.ok) return opened;
      const settle = () => settleJobsWait(this.#parts, callId, until, signal);
      return ok(await untilStored(world, signal, settle, CLIENT_TRIES_MAX));
    } catch (error) {
      await this.#record((unit) => giveUpJobWaits(unit.tx, callId));
      throw error;
    }
  }

  async settle(callId: string, signal: AbortSignal, gaveUp?: GaveUp): Promise<WaitEnd> {
    try {
      return await settleWait(this.#parts, callId, signal, gaveUp);
    } catch (error) {
      // The wait can also fail because the gateway stops. If the awaited run had ended by then, return its
      // answer.
      const end = await answeredBefore(this.#parts.store, callId);
      if (end !== undefined) return end;
      throw error;
    }
  }

  /**
   * Calls `work`, which waits for this call and returns its outcome. Repeats it while the store fails. If it
   * fails for good, the outcome goes to the caller's session.
   */
  async during<T>(callId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await untilStored(this.#parts.world, signal, work, CLIENT_TRIES_MAX);
    } catch (error) {
      await this.lose(callId);
      throw error;
    }
  }

  /**
   * Records that the answer to this call was written to the client's connection. Resolves after the first
   * attempt.
   */
  confirm(callId: string): Promise<void> {
    return this.#record((unit) => confirmAnswer(unit.tx, callId));
  }

  /**
   * Records that the client of this call gets no answer, so that its session gets the outcome as a message.
   * Resolves after the first attempt.
   */
  lose(callId: string): Promise<void> {
    return this.#record(async (unit) => {
      const runId = await loseAnswer(unit.tx, callId);
      if (runId !== undefined) await this.#lost(unit, [runId]);
    });
  }

  /** Ends the waits of callers whose process is dead. Without `of`: of all processes but this one. */
  async giveUp(unit: Unit, of?: "the dead"): Promise<void> {
    await this.#lost(unit, await giveUpCallerWaits(unit.tx, of));
    await giveUpCallerJobWaits(unit.tx, of);
  }

  stop(): void {
    this.#stop.abort();
  }

  #waiter(sessionKey: string) {
    return { runId: "", sessionKey, processId: this.#parts.processId };
  }

  /** Tells the sessions of the callers about those runs that have ended. */
  async #lost(unit: Unit, runIds: readonly string[]): Promise<void> {
    const { successors, acceptor } = this.#parts;
    for (const runId of runIds) {
      const run = await getRun(unit.tx, runId);
      if (run !== undefined && isEnded(run.state)) await successors.answerLost(acceptor, unit, run);
    }
  }

  async #record(write: (unit: Unit) => Promise<void>): Promise<void> {
    const { commit, world } = this.#parts;
    const store = (): Promise<void> => commit(write);
    try {
      await store();
    } catch (error) {
      if (!(error instanceof StoreProblem)) throw error;
      const text = "could not record whether an answer was delivered";
      logRetry(world.log, error, text);
      untilStored(world, this.#stop.signal, store).catch((last: unknown) => {
        world.log.warn({ err: last }, `${text}; the next start records it`);
      });
    }
  }
}
