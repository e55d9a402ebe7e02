// Owns retries of storing a message whose platform would not redeliver it: a few attempts, then a problem for
// the operator.

import { pause } from "../world/pause.ts";
import { type Account, ListenProblem } from "./accounts.ts";
import type { ChannelHost, InboundMessage } from "./channel.ts";

/** Number of attempts, and the first pause; later pauses grow. */
const STORE_TRIES = 6;
const STORE_PAUSE_MS = 200;

/** Resolves after the message is stored; throws `ListenProblem` if it can't be. */
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
