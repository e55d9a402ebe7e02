// A forward proxy on the loopback address, as companies have one: it forwards plain requests and opens tunnels.
// Only it knows the hosts below `example.test`, which stand for servers of the test. At a tunnel's end the
// server's certificate is signed by a private authority.

import { createServer, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { cleanup } from "../kit/cleanup.ts";
import { listenHere } from "../kit/loopback.ts";

/** Certificate of the private authority. */
export const PRIVATE_CA = `-----BEGIN CERTIFICATE-----
MIIBiTCCAS+gAwIBAgIUfj9eFuCrFufnmWiUY4eKYC7z8FcwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOUGFybGV5IHRlc3QgQ0EwIBcNMjYxMTI3MjE0MDU0WhgPMjEy
NjExMDMyMTQwNTRaMBkxFzAVBgNVBAMMDlBhcmxleSB0ZXN0IENBMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEygpgo+UaG4p5JrRs/VqLcWcztGuVB7dg7FpN/Aas
dCcjGL1IsuRSjbrq99Bm7kQEm6F41W3L9p8yDx7ATa1TgqNTMFEwHQYDVR0OBBYE
FPqOzhukQCSMjYt2TszTlZYpITw9MB8GA1UdIwQYMBaAFPqOzhukQCSMjYt2TszT
lZYpITw9MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgDOmW+dP6
bQHUGEH6tOoaWw7bMblxHETN33TI/DwozuICIQD/RHkwH0di/s+6w1JUyUyk3cY0
V368oMSR4p0epcH1Vg==
-----END CERTIFICATE-----
`;
/** Certificate of `*.example.test`, valid until 2126. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBsTCCAVagAwIBAgIUb5cM0gOkXXD4P33Wcwlgw1kL42UwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOUGFybGV5IHRlc3QgQ0EwIBcNMjYxMTI3MjE0MDU0WhgPMjEy
NjExMDMyMTQwNTRaMBcxFTATBgNVBAMMDGV4YW1wbGUudGVzdDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABIqcE7ssUqQyeOXy9eNLIpjB7+6FYtV0G4NKJqbMgimK
c2lrw+LjrCWZ+Cv/97Tf9XN1fbkyCEqrXAgINjV8n42jfDB6MC0GA1UdEQQmMCSC
DiouZXhhbXBsZS50ZXN0ggxleGFtcGxlLnRlc3SHBH8AAAEwCQYDVR0TBAIwADAd
BgNVHQ4EFgQUTHuRGHS96lIgpPsrHOo66JNcU0AwHwYDVR0jBBgwFoAU+o7OG6RA
JIyNi3ZOzNOVlikhPD0wCgYIKoZIzj0EAwIDSQAwRgIhANLoioSgFjCMf7uHV3QG
N0qCGNGhXkoG8Hlwdd4EAZtwAiEAyxIzddYf3xe/ACf0IiTqY4NlYEt2f4gmYO1A
eeiHlwU=
-----END CERTIFICATE-----
`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgMWfHcu3dTROW6oKm
0KLZckHpguVVgwtF3TJB1xTBcA2hRANCAASKnBO7LFKkMnjl8vXjSyKYwe/uhWLV
dBuDSiamzIIpinNpa8Pi46wlmfgr//e03/VzdX25MghKq1wICDY1fJ+N
-----END PRIVATE KEY-----
`;

export interface ForwardProxy {
  readonly url: string;
  /** Method and target of every request, such as `CONNECT model.example.test:443`. */
  readonly asked: string[];
}

/** Starts the proxy. `hosts`: the origin of each host's server, such as `http://127.0.0.1:1234`. */
export async function startForwardProxy(hosts: Readonly<Record<string, string>>): Promise<ForwardProxy> {
  const asked: string[] = [];
  const portOf = (host: string): number => Number(new URL(hosts[host] ?? "http://none.test:1").port);
  const secure = createTlsServer({ key: KEY, cert: CERTIFICATE }, (socket) => {
    const inner = connect(portOf(String(socket.servername)), "127.0.0.1");
    for (const one of [socket, inner]) one.on("error", () => {}).on("close", () => void inner.destroy());
    inner.on("close", () => void socket.destroy());
    socket.pipe(inner).pipe(socket);
  });
  const securePort = await listenHere(secure);
  const proxy = createServer((incoming, outgoing) => {
    asked.push(`${incoming.method} ${incoming.url}`);
    const { hostname, pathname, search } = new URL(incoming.url ?? "", "http://none.test");
    const { method, headers } = incoming;
    const to = { port: portOf(hostname), method, headers, path: pathname + search };
    const forwarded = request(to, (answer: IncomingMessage) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on("error", () => outgoing.writeHead(502).end());
    incoming.pipe(forwarded);
  });
  proxy.on("connect", (incoming: IncomingMessage, socket) => {
    asked.push(`CONNECT ${incoming.url}`);
    const [host = ""] = (incoming.url ?? "").split(":");
    if (hosts[host] === undefined) return socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    const inner = connect(securePort, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      socket.pipe(inner).pipe(socket);
    });
    for (const one of [socket, inner]) one.on("error", () => {}).on("close", () => void inner.destroy());
    inner.on("close", () => void socket.destroy());
  });
  const port = await listenHere(proxy);
  cleanup(() => {
    secure.close();
    proxy.close();
    proxy.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${port}`, asked };
}
