// The labels that messages and results of tools brought, in a transcript and in a chain.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { NOT_VISIBLE } from "../../src/core/rules/visibility.ts";
import type { Labels } from "../../src/core/shapes/labels.ts";
import { GUEST_SESSION, MAIN, openStage, order, type Stage } from "./stage.ts";

const words = ({ outside = [], private: hidden = [] }: Labels): string[] => [
  ...outside.map(({ source }) => `outside ${source}`),
  ...hidden.map(({ source }) => `private ${source}`),
];

/** Returns the sources that each message of a session brought, in order. */
async function readSteps(
  client: Stage["client"],
  sessionKey: string,
): Promise<(readonly [string, string[]])[]> {
  const { messages, labels = {} } = await client.request("chat.history", { sessionKey, includeRuns: true });
  return messages.flatMap(({ id, role }) => {
    const own = labels[id];
    return own === undefined ? [] : [[role, words(own)] as const];
  });
}

const chainOf = async ({ house }: Stage, runId: string): Promise<string> => {
  const run = await house.store.db.selectFrom("runs").select("chain_id").where("run_id", "=", runId);
  return (await run.executeTakeFirstOrThrow()).chain_id;
};

test("LS1: messages of guests, pages and files have their sources, each time; a release takes them away", async () => {
  const stage = await openStage();
  const { client, evil } = stage;
  writeFileSync(join(stage.workspace, "notes.md"), "nothing new");
  await stage.ended(await stage.guest(order("read", { path: "notes.md" })));
  await stage.ended(await stage.guest(order("fetch", { url: evil.url("/a") })));
  await stage.ended(await stage.guest(order("fetch", { url: evil.url("/b") })));
  const guest = ["user", ["outside guest telegram:222"]];
  const page = ["toolResult", [`outside web ${evil.host}`]];
  const file = ["toolResult", ["private file notes.md"]];
  expect(await readSteps(client, GUEST_SESSION)).toEqual([guest, file, guest, page, guest, page]);
  await client.request("labels.release", { sessionKey: GUEST_SESSION });
  expect(await readSteps(client, GUEST_SESSION)).toEqual([]);
});

test("a step of a chain has the sources that its run brought into its session, with every send", async () => {
  const stage = await openStage();
  const runId = await stage.guest(order("sessions_send", { sessionKey: "agent:b:main", message: "hello" }));
  await stage.ended(runId);
  const { steps } = await stage.client.request("chains.get", { chainId: await chainOf(stage, runId) });
  const brought = steps.flatMap(({ kind, labels }) =>
    labels?.outside === undefined ? [] : [[kind, words({ outside: labels.outside })] as const],
  );
  expect(brought.slice(0, 2)).toEqual([
    ["message", ["outside guest telegram:222"]],
    ["send", ["outside guest telegram:222"]],
  ]);
  expect(await readSteps(stage.client, "agent:b:main")).toEqual([["user", ["outside guest telegram:222"]]]);
});

test("I9: a step names no session that the caller may not see", async () => {
  const stage = await openStage();
  const visitor = "agent:main:visitor";
  await stage.ended(await stage.token("hello"));
  const runId = await stage.tell(order("sessions_send", { sessionKey: visitor, message: "hello" }));
  await stage.ended(runId);
  const limited = await stage.limited();
  const hidden = `private session ${NOT_VISIBLE}`;
  expect(await readSteps(limited, visitor)).toContainEqual(["user", [hidden]]);
  expect(await readSteps(stage.client, visitor)).toContainEqual(["user", [`private session ${MAIN}`]]);
  const { steps } = await limited.request("chains.get", { chainId: await chainOf(stage, runId) });
  expect(JSON.stringify(steps)).not.toContain(MAIN);
});
