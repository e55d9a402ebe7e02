// A proxy in front of a gateway on this machine: a test can hold, slow down and cut its connections.

import { connect, createServer, type Socket } from "node:net";
import { cleanup } from "../kit/engine/engine.ts";
import { listenHere } from "../kit/loopback.ts";

export interface Line {
  /** The gateway's address through the proxy. */
  readonly http: string;
  /** Holds data from the gateway; data to the gateway still passes. */
  hold(): void;
  /** Releases held data, and passes on later data. */
  release(): void;
  /** Breaks every connection and discards held data. */
  cut(): void;
  /**
   * Limits the bytes per second from the gateway, over all connections, which share them evenly. 0: no limit.
   * `roundTripMs`: a new connection's first data wait so long, for the handshake of TCP; then data in each
   * direction take half of it.
   */
  slow(bytesPerSecond: number, roundTripMs?: number): void;
}

interface Piece {
  readonly bytes: Buffer;
  readonly dueAt: number;
}

interface Way {
  readonly near: Socket;
  readonly far: Socket;
  /** When the handshake has ended. */
  readonly openAt: number;
  sent: Piece[];
  held: Piece[];
}

const SLICE_MS = 10;
/** Time without a slice that is made up for, if the machine was busy. */
const LATE_MAX_MS = 200;
/** Bytes that a connection sends before another one gets its turn. */
const PACKET_BYTES = 1_460;

/** Removes at most `bytes` of the first data if they are due. */
function takeDue(pieces: Piece[], now: number, bytes = Number.POSITIVE_INFINITY): Buffer | undefined {
  const [first] = pieces;
  if (first === undefined || first.dueAt > now) return undefined;
  const taken = first.bytes.subarray(0, bytes);
  if (taken.length === first.bytes.length) pieces.shift();
  else pieces[0] = { ...first, bytes: first.bytes.subarray(bytes) };
  return taken;
}

/** Passes on all data that are due. */
function pass(pieces: Piece[], now: number, to: Socket): void {
  let next = takeDue(pieces, now);
  while (next !== undefined) {
    to.write(next);
    next = takeDue(pieces, now);
  }
}

/** Passes on at most `bytes` to the browser, packet by packet in turn. Returns the bytes that are left. */
function share(ways: Set<Way>, now: number, bytes: number): number {
  let left = bytes;
  for (const way of ways) {
    if (left < 1) break;
    const next = takeDue(way.held, now, Math.floor(Math.min(left, PACKET_BYTES)));
    if (next === undefined) continue;
    way.near.write(next);
    left -= next.length;
    // Moves it to the end, where this loop, or the next call, comes to it again after the others.
    ways.delete(way);
    ways.add(way);
  }
  return left;
}

export async function openLine(port: number): Promise<Line> {
  const ways = new Set<Way>();
  let held = false;
  let bytesPerSecond = 0;
  let roundTripMs = 0;
  let flushedAt = performance.now();
  let left = 0;

  const flush = (): void => {
    const now = performance.now();
    const more = (bytesPerSecond * Math.min(now - flushedAt, LATE_MAX_MS)) / 1_000;
    // Data that are not there yet leave no more than one packet of the line for later.
    left = bytesPerSecond === 0 ? Number.POSITIVE_INFINITY : Math.min(left, PACKET_BYTES) + more;
    flushedAt = now;
    for (const { far, sent } of ways) pass(sent, now, far);
    if (!held) left = share(ways, now, left);
  };
  const timer = setInterval(flush, SLICE_MS);

  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    const way: Way = { near, far, openAt: performance.now() + roundTripMs, sent: [], held: [] };
    ways.add(way);
    const dueAt = (): number => Math.max(performance.now(), way.openAt) + roundTripMs / 2;
    near.on("data", (bytes) => {
      way.sent.push({ bytes, dueAt: dueAt() });
      if (roundTripMs === 0) flush();
    });
    far.on("data", (bytes) => {
      way.held.push({ bytes, dueAt: dueAt() });
      if (bytesPerSecond === 0 && roundTripMs === 0) flush();
    });
    const end = (): void => {
      ways.delete(way);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) socket.on("error", end).on("close", end);
  });
  const own = await listenHere(server);
  const cut = (): void => {
    for (const { near, far } of ways) {
      near.destroy();
      far.destroy();
    }
  };
  cleanup(() => {
    clearInterval(timer);
    cut();
    server.close();
  });
  return {
    http: `http://127.0.0.1:${own}`,
    hold() {
      held = true;
    },
    release() {
      held = false;
      flush();
    },
    cut,
    slow(bytes, trip = 0) {
      bytesPerSecond = bytes;
      roundTripMs = trip;
    },
  };
}
