// Implements the channel `webchat`: clients on the gateway's own WebSocket.
// The transcript already contains each text, so a delivery only sends a live event. A client that is
// disconnected reads the transcript later.

import { optional } from "../core/optional.ts";
import { WEBCHAT } from "../core/shapes/route.ts";
import type { Bus } from "../engine/bus.ts";
import type { Clock } from "../world.ts";
import type { Channel } from "./channel.ts";

export function createWebchat(bus: Bus, clock: Clock): Channel {
  return {
    id: WEBCHAT,
    deduplicates: true,
    async deliver(message) {
      const { deliveryId, runId, text } = message;
      bus.publish({
        kind: "delivered",
        deliveryId,
        sessionKey: message.route.to,
        text,
        atMs: clock.now(),
        ...optional({ runId }),
      });
      return { kind: "sent" };
    },
  };
}
