// Retries storing a message that its platform would not deliver again. After a few attempts, reports the
// problem to the operator.

import { pause } from "../world/pause.ts";
import { type Account, ListenProblem } from "./accounts.ts";
import type { ChannelHost, InboundMessage } from "./channel.ts";

/** Maximum number of attempts, and the pause after the first one. Later pauses are longer. */
const STORE_TRIES = 6;
const STORE_PAUSE_MS = 200;

/** Resolves after the message is stored. Throws a `ListenProblem` if it cannot be stored. */
export async function receivePatiently(
  host: ChannelHost,
  account: Account["name"],
  message: InboundMessage,
  signal: AbortSignal,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await host.receive(message);
    } catch (error) {
      host.world.log.warn({ err: error, account, tries }, "a message could not be stored");
      if (tries === STORE_TRIES || signal.aborted)
        throw new ListenProblem("incoming messages can't be stored");
      await pause(host.world.clock, STORE_PAUSE_MS * 2 ** (tries - 1), signal);
    }
  }
}
