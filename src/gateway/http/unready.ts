// Answers for a gateway that cannot start yet: it is alive, accepts no work, and gives the reason.

import type { AddressInfo } from "node:net";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { plainHttp } from "../../world/http.ts";
import { mayProbe } from "./host.ts";

/** Timeouts are short, because a gateway that is not ready answers every request at once. */
const HTTP_OPTIONS = { headersTimeout: 5_000, requestTimeout: 5_000, connectionsCheckingInterval: 1_000 };
const CONNECTIONS_MAX = 64;

/** Answers every request on the gateway's future address. */
export async function listenUnready(
  settings: Settings["gateway"],
  reason: string,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const notReady = { ok: false, status: "not ready", reason };
  const refusal = { code: "UNAVAILABLE", message: `the gateway is ${reason}`, retryable: true };
  const server = plainHttp().createServer(HTTP_OPTIONS, (request, response) => {
    const { host, origin } = request.headers;
    const isHealth = request.url?.split("?", 1)[0] === "/healthz" && mayProbe(settings, { host, origin });
    const headers = {
      "content-type": "application/json",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
      connection: "close",
    };
    const body = isHealth ? { ok: true, status: "live" } : notReady;
    response.writeHead(isHealth ? 200 : 503, headers).end(JSON.stringify(body));
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.on("upgrade", (_, socket) => {
    const head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close";
    socket.end(`${head}\r\n\r\n${JSON.stringify({ error: refusal })}`);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(settings.port, settings.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
