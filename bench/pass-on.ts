// Passes a request on to a gateway, with the token that official suites do not send.

import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { TOKEN } from "../tests/kit/process/fleet.ts";

/** `body`: in place of the body of the request. */
export function passOn(from: IncomingMessage, to: ServerResponse, gateway: string, body?: string): void {
  const { "content-length": length, "transfer-encoding": coding, ...given } = from.headers;
  const framing = body === undefined ? { "content-length": length, "transfer-encoding": coding } : {};
  const kept = Object.fromEntries(Object.entries(framing).filter(([, value]) => value !== undefined));
  const headers = { ...given, ...kept, authorization: `Bearer ${TOKEN}` };
  const { hostname: host, port } = new URL(gateway);
  const sent = request({ host, port, path: from.url, method: from.method, headers }, (answer) => {
    to.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(to);
  });
  sent.on("error", () => to.destroy());
  to.on("close", () => sent.destroy());
  if (body === undefined) from.pipe(sent);
  else sent.end(body);
}
