// A model server that is down at first and then refuses every call with a given text. Each call is logged,
// retried and reported as failed.

import { cleanup } from "../../kit/engine/engine.ts";
import { serveHttp } from "../../kit/loopback.ts";

/** Starts the server, and returns its address for a provider's `baseUrl`. */
export async function refusingModel(message: string, type = "x"): Promise<string> {
  let asked = 0;
  const { origin, close } = await serveHttp((_, response) => {
    response.writeHead(asked++ === 0 ? 503 : 400, { "content-type": "application/json", "retry-after": "0" });
    response.end(JSON.stringify({ error: { message, type } }));
  });
  cleanup(close);
  return `${origin}/v1`;
}
