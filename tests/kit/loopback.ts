// Starts servers for tests on the loopback address, and finds free ports. Closing a server also closes its
// connections. Does not need a test runner.

import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/**
 * Lower than the ephemeral ports, so the system never gives one of these ports to a server that asks for any
 * port.
 */
const PORT_FIRST = 22_000;
const PORT_COUNT = 10_000;

/** Starts a server at this port, or at any free port. Returns the port. */
export async function listenHere(server: Server, port = 0): Promise<number> {
  await once(server.listen(port, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}

/**
 * Returns a port that no server uses and that the system assigns to no other server. `first`: the lowest
 * candidate.
 */
export async function freePort(first = PORT_FIRST): Promise<number> {
  for (;;) {
    const server = createServer();
    const port = first + Math.floor(Math.random() * PORT_COUNT);
    const isFree = await listenHere(server, port).then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

export interface HttpHere {
  readonly port: number;
  /** Like `http://127.0.0.1:1234`. */
  readonly origin: string;
  /** Closes the server and all its connections. Does nothing at the second call. */
  close(): Promise<void>;
}

export async function serveHttp(listener: RequestListener, wantedPort = 0): Promise<HttpHere> {
  const server = createHttpServer(listener);
  const port = await listenHere(server, wantedPort);
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A server that accepts TCP connections and never answers. A TLS connection to it is never established. */
export interface DeafServer {
  /** Like `https://127.0.0.1:1234`. */
  readonly url: string;
  connections(): number;
  close(): Promise<void>;
}

export async function deafServer(): Promise<DeafServer> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => {}));
  });
  const port = await listenHere(server);
  return {
    url: `https://127.0.0.1:${port}`,
    connections: () => sockets.length,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
