// Runs in vitest's own process, before and after all test files. Builds the web page if its sources are
// newer. Starts one PostgreSQL server for the whole run when a test first asks for its address at a local
// port. If PARLEY_TEST_POSTGRES is set, tests use that server instead; it is the address of a superuser.

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
