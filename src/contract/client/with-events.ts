// Adds event streams to a client, and reports changes of the connection to the readers of the streams.
// Buffers are limited (event-stream.ts). A reader gets a notice of each reconnect and of the end.

import { canonicalKey } from "../../core/shapes/session-key.ts";
import type { EventName } from "../events.ts";
import type { HelloOk } from "../frames.ts";
import { GatewayError } from "./error.ts";
import { BUFFER_DEFAULT_EVENTS, EventStream } from "./event-stream.ts";
import type { ReconnectingClient } from "./reconnecting.ts";
import type { EventOptions, GatewayClient, GatewayEvent } from "./types.ts";

/**
 * Converts a session key in any accepted spelling, such as `main`, to its canonical form, by the rules of the
 * connected gateway.
 */
function sessionKeyFor(text: string, { snapshot }: HelloOk): string {
  const { defaultAgentId, mainKey, scope } = snapshot.sessionDefaults;
  const rules = { defaultAgentId, mainKey, scope: scope === "global" ? scope : "per-sender" } as const;
  const key = canonicalKey(text, { agentId: defaultAgentId, bareNames: true }, rules);
  if (key.ok) return key.value;
  const { code, error, hint, details } = key;
  throw new GatewayError("INVALID_REQUEST", error, { details: { ...details, code, hint } });
}

/** Returns the same client with `events` added. */
export function withEvents(client: ReconnectingClient): GatewayClient {
  const streams = new Set<EventStream>();
  client.onState((state, error, wanted) => {
    if (state === "connected") for (const stream of streams) stream.reconnected();
    if (state === "closed") for (const stream of [...streams]) stream.end(wanted ? undefined : error);
  });
  const events = <E extends EventName = EventName>(
    options: EventOptions<E> = {},
  ): AsyncIterableIterator<GatewayEvent<E>> => {
    const { sessionKey, runId, names, signal, bufferMax = BUFFER_DEFAULT_EVENTS } = options;
    const filter = {
      sessionKey: sessionKey === undefined ? undefined : sessionKeyFor(sessionKey, client.hello),
      runId,
      names,
    };
    const over = (): void => stream.end();
    const stream: EventStream = new EventStream(filter, bufferMax, () => {
      streams.delete(stream);
      off();
      signal?.removeEventListener("abort", over);
    });
    const off = client.onEvent((frame, chars) => stream.offer(frame, chars));
    streams.add(stream);
    signal?.addEventListener("abort", over);
    if (signal?.aborted === true || client.state === "closed") over();
    // The filter lets only the requested names pass, so the type is safe.
    return stream as AsyncIterableIterator<GatewayEvent<E>>;
  };
  return Object.assign(client, { events });
}
