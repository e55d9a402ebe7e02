// Forks a session after one of its messages.

import { ask, has, may } from "../gateway.ts";
import { complain, say } from "../parts/notices.tsx";
import { openToWrite } from "./drafts.ts";

export const mayFork = (): boolean => may("operator.write") && has("sessions.fork");

/** True until the gateway has answered, so that a second click on a slow connection makes no second fork. */
let isForking = false;

/** Forks the session after the message `at`, and opens the fork with the focus in its message box. */
export async function fork(sessionKey: string, at: string): Promise<void> {
  if (isForking) return;
  isForking = true;
  try {
    const { key, leftBehind } = await ask("sessions.fork", { sessionKey, at });
    const { runs, jobs, waits } = leftBehind;
    openToWrite(key);
    if (runs + jobs + waits > 0) say("The original session keeps its unfinished work.");
  } catch (error) {
    complain(error);
  }
  isForking = false;
}
