// Passes a request on to a gateway, with the token that official suites do not send.

import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { TOKEN } from "../tests/kit/process/fleet.ts";

/** `adapt` changes the body. Default: nothing is changed. */
export async function passOn(
  from: IncomingMessage,
  to: ServerResponse,
  gateway: string,
  adapt: (body: string) => string | Promise<string> = (body) => body,
): Promise<void> {
  const body = await adapt(await text(from));
  const { "content-length": _, "transfer-encoding": _coding, ...given } = from.headers;
  const headers = { ...given, authorization: `Bearer ${TOKEN}` };
  const { hostname: host, port } = new URL(gateway);
  const sent = request({ host, port, path: from.url, method: from.method, headers }, (answer) => {
    to.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(to);
  });
  sent.on("error", () => to.destroy());
  to.on("close", () => sent.destroy());
  sent.end(body);
}
