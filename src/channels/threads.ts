// Creates channel threads for sub-agents. If a channel does not answer, only the call fails that needs the
// thread.

import { fail } from "../core/shapes/errors.ts";
import type { Threads } from "../flows/delivery/bindings.ts";
import { within } from "../world/pause.ts";
import type { World } from "../world.ts";
import type { Channel } from "./channel.ts";

const OPEN_MS = 30_000;

/** Creates the service that opens threads. The caller may add channels to `channels` later. */
export function threadsOf(channels: ReadonlyMap<string, Channel>, { clock, log }: World): Threads {
  return {
    has: (id) => channels.get(id)?.openThread !== undefined,
    async open(at, title) {
      const { channel: id } = at;
      try {
        const opening = channels.get(id)?.openThread?.(at, title);
        if (opening === undefined) return fail("spawn_denied", `there is no channel ${id} with threads`);
        const opened = await within(clock, OPEN_MS, opening);
        if (opened !== undefined) return opened;
        return fail("channel_failed", `${id} did not create a thread within ${OPEN_MS / 1_000} s`, {
          hint: "Spawn again, or spawn without thread.",
        });
      } catch (error) {
        log.error({ err: error, channel: id }, "a channel failed to create a thread");
        return fail("channel_failed", `${id} could not create a thread`, {
          hint: "Spawn without thread; the gateway's log has the reason.",
        });
      }
    },
  };
}
