// A TCP proxy for tests. It forwards both directions, unless a test changes the data or closes the
// connections.

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listenHere } from "../../kit/loopback.ts";

/** A filter returns the data to forward, which it may change, or closes both sides. */
type Heard = (piece: Buffer) => Buffer | "hang up";

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
        const said = heard()(piece as Buffer);
        if (said !== "hang up") return void to.write(said);
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
