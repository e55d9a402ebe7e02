// Owns that an account has one program at a time: started when it is first needed, again after its end, and
// no more once the channel is closed.

import type { World } from "../../world.ts";
import { ListenProblem } from "../accounts.ts";
import { type Program, startProgram } from "./program.ts";

export interface Runner {
  /** The program that runs. Throws a ListenProblem where none can be started. */
  program(): Promise<Program>;
  /** Ends it; whoever needs it next has it started anew. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export function createRunner(command: readonly string[], account: string, world: World): Runner {
  let current: Program | undefined;
  let isClosed = false;
  let turn: Promise<unknown> = Promise.resolve();

  /** One after the other: who comes second finds what the first has started. */
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
