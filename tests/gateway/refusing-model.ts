// A model server that is down at first and then refuses, in a test's words: a call of it is logged, tried again
// and told as a failure.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { cleanup } from "../kit/engine.ts";

/** Its address, as a provider's `baseUrl`. */
export async function refusingModel(message: string, type = "x"): Promise<string> {
  let asked = 0;
  const server = createServer((_, response) => {
    response.writeHead(asked++ === 0 ? 503 : 400, { "content-type": "application/json", "retry-after": "0" });
    response.end(JSON.stringify({ error: { message, type } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}
