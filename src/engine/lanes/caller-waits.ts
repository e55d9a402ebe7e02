// Owns the waits of callers that are not runs: clients and operators. Such a caller does not survive a crash,
// so its wait ends with the process.
// CW1: a caller that confirms its answers gets either the answer or a notice in its session. Whether the
//      answer reached it is recorded until the store has the record, or the process stops; then the next
//      start, or another process, ends the wait, and the notice follows.
// CW2: a wait that fails counts as lost, and never as answered.

import { isEnded } from "../../core/shapes/run.ts";
import { StoreProblem } from "../../store/problems.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { confirmAnswer, giveUpCallerWaits, loseAnswer } from "../../store/queries/runs/waits.ts";
import type { EngineCore } from "../engine.ts";
import { CLIENT_TRIES_MAX, logRetry, untilStored } from "../run/until-stored.ts";
import type { Unit } from "../unit.ts";
import { type CallWait, openWait, settleWait } from "./waits.ts";

interface Call {
  readonly callId: string;
  readonly signal: AbortSignal;
  readonly wait?: CallWait | undefined;
}

export class CallerWaits {
  readonly #parts: EngineCore;
  readonly #stop = new AbortController();

  constructor(parts: EngineCore) {
    this.#parts = parts;
  }

  /**
   * Returns the wait of a call: that of its run, if a run makes it. `sessionKey`: the session of a client
   * that calls `confirm` or `lose` for each of its calls; if that session is external, the wait adds an edge
   * to the wait graph.
   */
  of({ wait, callId, signal }: Call, sessionKey = ""): CallWait {
    const { owner: processId, world } = this.#parts;
    return (
      wait ?? {
        open: (unit, request) => openWait(unit, { runId: "", sessionKey, processId }, request),
        settle: (waits, wanted, gaveUp) => settleWait(this.#parts, waits, wanted, signal, gaveUp),
        // If the work fails for good, the outcome goes to the caller's session.
        during: (work) =>
          untilStored(world, signal, work, CLIENT_TRIES_MAX).catch(async (error: unknown) => {
            await this.lose(callId);
            throw error;
          }),
      }
    );
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
      await this.#notifyLost(unit, await loseAnswer(unit.tx, callId));
    });
  }

  /** Ends the waits of callers whose process is dead. Without `of`: of all processes but this one. */
  async giveUp(unit: Unit, of?: "the dead"): Promise<void> {
    await this.#notifyLost(unit, await giveUpCallerWaits(unit.tx, of));
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Tells the sessions of the callers about those targets that are runs and have ended. */
  async #notifyLost(unit: Unit, targetIds: readonly string[]): Promise<void> {
    const { successors, acceptor } = this.#parts;
    for (const runId of targetIds) {
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
