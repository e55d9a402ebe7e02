// A model server that is down at first and then refuses with a given text: each call is logged, retried and
// reported as failed.

import { cleanup } from "../../kit/engine/engine.ts";
import { serveHttp } from "../../kit/loopback.ts";

/** Its address, as a provider's `baseUrl`. */
export async function refusingModel(message: string, type = "x"): Promise<string> {
  let asked = 0;
  const { origin, close } = await serveHttp((_, response) => {
    response.writeHead(asked++ === 0 ? 503 : 400, { "content-type": "application/json", "retry-after": "0" });
    response.end(JSON.stringify({ error: { message, type } }));
  });
  cleanup(close);
  return `${origin}/v1`;
}
