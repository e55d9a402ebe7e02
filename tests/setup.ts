// Runs in vitest's own process, around all test files. The web page is built, if what it is made of is newer
// than it. One PostgreSQL server serves a whole run: it is started
// when the first test asks at this door for its address, and not at all when none does. With
// PARLEY_TEST_POSTGRES set, that is the address, of a superuser on a server of another version.

import { createServer } from "node:net";
import type { TestProject } from "vitest/node";
import { buildPage } from "../ui/build.js";
import { listenHere } from "./kit/loopback.ts";
import { type PostgresServer, startPostgres } from "./kit/postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The port that answers with the server's address, or with `!` and the reason why there is none. */
    postgresDoor: number;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await buildPage({ ifStale: true });
  let server: Promise<PostgresServer> | undefined;
  const given = process.env.PARLEY_TEST_POSTGRES;
  const door = createServer((socket) => {
    socket.on("error", () => {});
    if (given !== undefined) return socket.end(given);
    server ??= startPostgres();
    server.then(
      ({ url }) => socket.end(url),
      (error: unknown) => socket.end(`!${error}`),
    );
  });
  project.provide("postgresDoor", await listenHere(door));
  return async () => {
    door.close();
    await (await server?.catch(() => undefined))?.end();
  };
}
