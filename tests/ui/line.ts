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
  /** Limits the bytes per second from the gateway, over all connections. 0: no limit. */
  slow(bytesPerSecond: number): void;
}

interface Way {
  readonly near: Socket;
  readonly far: Socket;
  held: Buffer[];
}

const SLICE_MS = 20;

export async function openLine(port: number): Promise<Line> {
  const ways = new Set<Way>();
  let held = false;
  let bytesPerSecond = 0;

  const flush = (): void => {
    let left = bytesPerSecond === 0 ? Number.POSITIVE_INFINITY : (bytesPerSecond * SLICE_MS) / 1000;
    for (const { near, held: waiting } of held ? [] : ways) {
      while (left > 0 && waiting.length > 0) {
        const piece = waiting.shift() ?? Buffer.alloc(0);
        const now = piece.subarray(0, Math.max(1, left));
        if (now.length < piece.length) waiting.unshift(piece.subarray(now.length));
        near.write(now);
        left -= now.length;
      }
    }
  };
  const timer = setInterval(flush, SLICE_MS);

  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    const way: Way = { near, far, held: [] };
    ways.add(way);
    near.on("data", (piece) => far.write(piece));
    far.on("data", (piece) => {
      way.held.push(piece);
      if (bytesPerSecond === 0) flush();
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
    slow(bytes) {
      bytesPerSecond = bytes;
    },
  };
}
