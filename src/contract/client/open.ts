// Opens the first connection of a client, on every platform.

import { plainClock, plainIds, plainRandom } from "../../world/plain.ts";

import { socketAddress } from "../protocol.ts";
import type { Dialer } from "./dial/dial.ts";
import { aborted, GatewayError } from "./error.ts";
import { ReconnectingClient } from "./reconnecting.ts";
import { openSocket, type SocketParts } from "./socket.ts";
import type { ClientWorld, ConnectOptions } from "./types.ts";

const CONNECT_TIMEOUT_MS = 10_000;

/** A library writes no log, but an exception in a program's listener must be visible. */
const plainWorld: ClientWorld = {
  clock: plainClock,
  ids: plainIds,
  random: plainRandom,
  log: {
    debug: () => {},
    info: () => {},
    warn: () => {},
    error: ({ err }: { err?: unknown }, text) => console.error(text, err),
  },
};

function addressOf(text: string): string {
  const address = socketAddress(text);
  if (address !== undefined) return address;
  const shown = JSON.stringify(text.slice(0, 200));
  throw new GatewayError(
    "INVALID_REQUEST",
    `invalid address: url must be like ws://127.0.0.1:7275, got ${shown}`,
  );
}

export async function openClient(options: ConnectOptions, dialer: Dialer) {
  const { url, token, role, scopes, client, signal, world = plainWorld } = options;
  const { device, caps, commands } = options;
  const connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
  const parts: SocketParts = {
    dialer,
    url: addressOf(url),
    token,
    role,
    scopes,
    client,
    device,
    caps,
    commands,
    connectTimeoutMs,
    world,
  };
  const socket = await openSocket(parts, signal);
  const opened = new ReconnectingClient(parts, socket, options.reconnect ?? true);
  if (signal === undefined) return opened;
  if (signal.aborted) {
    opened.close();
    throw aborted(signal, "connecting was aborted");
  }
  const close = (): void => opened.close();
  signal.addEventListener("abort", close, { once: true });
  opened.onState((state) => {
    if (state === "closed") signal.removeEventListener("abort", close);
  });
  return opened;
}
