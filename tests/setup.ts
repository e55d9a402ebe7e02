// Runs in vitest's own process, around all test files. Builds the web page if its sources are newer. One
// PostgreSQL server is shared by the whole run, and started when a test first asks for its address at a local
// port. PARLEY_TEST_POSTGRES replaces it with the address of a superuser on another server.

import { createServer } from "node:net";
import type { TestProject } from "vitest/node";
import { buildPage } from "../ui/build.js";
import { listenHere } from "./kit/loopback.ts";
import { type PostgresServer, startPostgres } from "./kit/store/postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Port that answers each connection with the server's address, or with `!` and why there is no server. */
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
