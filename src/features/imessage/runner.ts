// Owns the program of an account. The program is started when it is first used, and restarted after it exits.
// It is never started after the channel is closed.

import { ListenProblem } from "../../channels/accounts.ts";
import type { World } from "../../world.ts";
import { type Program, startProgram } from "./program.ts";

export interface Runner {
  /** Returns the running program. Throws a ListenProblem if it can't be started. */
  program(): Promise<Program>;
  /** Stops the program. The next use starts it again. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export function createRunner(command: readonly string[], account: string, world: World): Runner {
  let current: Program | undefined;
  let isClosed = false;
  let turn: Promise<unknown> = Promise.resolve();

  /** Runs tasks one after the other, so that a second caller finds the program that the first one started. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = turn.then(work);
    turn = done.catch(() => undefined);
    return done;
  }

  async function start(): Promise<Program> {
    if (isClosed) throw new ListenProblem("the channel is closed");
    if (current?.running() === true) return current;
    const program = await startProgram(command, world);
    void program.ended.then((why) => {
      if (current === program) world.log.warn({ account }, why);
    });
    current = program;
    return program;
  }

  async function stop(): Promise<void> {
    const stopping = current;
    current = undefined;
    await stopping?.stop();
  }

  return {
    program: () => inTurn(start),
    restart: () => inTurn(stop),
    close() {
      isClosed = true;
      return inTurn(stop);
    },
  };
}
