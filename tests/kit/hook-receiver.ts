// A program that receives web hooks: a real HTTP server that checks every signature as docs/OUTGOING.md says,
// and answers as a test requires.

import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders, RequestListener, ServerResponse } from "node:http";
import { cleanup } from "./engine/engine.ts";
import { serveHttp } from "./loopback.ts";

export const SECRET = "a-secret-of-the-tests";

export interface Told {
  readonly id: string;
  readonly type: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape.
  readonly body: any;
}

export interface Receiver {
  readonly url: string;
  readonly told: Told[];
  /** Resolves with the first matching request, which may have arrived already. */
  next(fits: (told: Told) => boolean): Promise<Told>;
  close(): Promise<void>;
}

/**
 * Starts the receiver. `answer`: by default it answers 204. `port`: the port of an earlier receiver that was
 * closed.
 */
export async function startReceiver(
  answer: (told: Told, response: ServerResponse, index: number) => void = (_, response) => {
    response.writeHead(204).end();
  },
  { secret = Buffer.from(SECRET), port = 0 }: { secret?: Buffer; port?: number } = {},
): Promise<Receiver> {
  const told: Told[] = [];
  const watchers = new Set<() => void>();
  const take: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      const id = String(request.headers["webhook-id"]);
      const signed = `${id}.${request.headers["webhook-timestamp"]}.${text}`;
      const wanted = Buffer.from(`v1,${createHmac("sha256", secret).update(signed).digest("base64")}`);
      const given = Buffer.from(String(request.headers["webhook-signature"]));
      if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) {
        response.writeHead(401).end();
        return;
      }
      const body = JSON.parse(text) as { type: string };
      const one = { id, type: body.type, headers: request.headers, text, body };
      told.push(one);
      answer(one, response, told.length - 1);
      for (const watcher of [...watchers]) watcher();
    });
  };
  const { origin, close } = await serveHttp(take, port);
  cleanup(close);
  return {
    url: `${origin}/told`,
    told,
    next: (fits) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = told.find(fits);
          if (found === undefined) return;
          watchers.delete(look);
          resolve(found);
        };
        watchers.add(look);
        look();
      }),
    close,
  };
}
