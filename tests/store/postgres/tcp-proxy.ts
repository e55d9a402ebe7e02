// A TCP proxy for tests. It forwards both directions, unless a test changes the data or closes the
// connections.

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listenHere } from "../../kit/loopback.ts";

/**
 * A filter returns the data to forward, which it may change, or closes both sides. In a list, the data is
 * forwarded before both sides are closed.
 */
type Heard = (piece: Buffer, connection: object) => Buffer | "hang up" | readonly [last: Buffer];

export interface TcpProxy {
  readonly port: number;
  /** The filter of each direction. A test may replace it at any time. By default everything is forwarded. */
  fromClient: Heard;
  fromServer: Heard;
  /** Closes all connections. */
  hangUp(): void;
  /** If true, the proxy accepts connections and never answers. */
  deaf: boolean;
  close(): Promise<void>;
}

export async function openTcpProxy(serverPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on("error", () => {}).on("close", () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    keep(client);
    if (tap.deaf) return void client.resume();
    const upstream = keep(connect(serverPort, "127.0.0.1"));
    const pass = (from: Socket, to: Socket, heard: () => Heard): void => {
      from.on("data", (piece) => {
        const said = heard()(piece as Buffer, client);
        if (Buffer.isBuffer(said)) return void to.write(said);
        if (said !== "hang up") return void to.end(said[0], () => from.destroy());
        client.destroy();
        upstream.destroy();
      });
      from.on("close", () => to.destroy());
    };
    pass(client, upstream, () => tap.fromClient);
    pass(upstream, client, () => tap.fromServer);
  });
  const port = await listenHere(server);
  const tap: TcpProxy = {
    port,
    deaf: false,
    fromClient: (piece) => piece,
    fromServer: (piece) => piece,
    hangUp: () => {
      for (const socket of sockets) socket.destroy();
    },
    close: async () => {
      tap.hangUp();
      server.close();
      await once(server, "close");
    },
  };
  return tap;
}

/** Loses the connection at a moment that `isNow` names, which is asked once for each message. */
export type Cut = (tap: TcpProxy, isNow: () => boolean) => void;

/** The server's last words: it ends the connection for this reason. */
function lastWords(code: string, text: string): Buffer {
  const body = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${text}\0\0`);
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const IDLE = lastWords("25P03", "terminating connection due to idle-in-transaction timeout");
const ENDED = lastWords("57P01", "terminating connection due to administrator command");

const atServer =
  (change: (piece: Buffer) => ReturnType<Heard>): Cut =>
  (tap, isNow) => {
    tap.fromServer = (piece) => (isNow() ? change(piece) : piece);
  };

/** Every way in which the connection to a PostgreSQL server can be lost. */
export const CUTS: Readonly<Record<string, Cut>> = {
  "before a statement arrives": (tap, isNow) => {
    tap.fromClient = (piece) => (isNow() ? "hang up" : piece);
  },
  "before an answer arrives": atServer(() => "hang up"),
  "in the middle of an answer": atServer((piece) => [piece.subarray(0, piece.length >> 1)]),
  "after an answer, with an idle transaction": atServer((piece) => [Buffer.concat([piece, IDLE])]),
  "instead of an answer, with an idle transaction": atServer(() => [IDLE]),
  "instead of an answer, by an administrator": atServer(() => [ENDED]),
};
