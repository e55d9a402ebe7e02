// The texts that a fork shares keep their labels for those who read them there, whatever becomes of the origin.

import { expect, test } from "vitest";
import { labelFrom } from "../../src/core/rules/labels/labels.ts";
import { addLabels } from "../../src/store/queries/labels.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import { GUEST_SESSION, openStage, order, type Stage } from "./stage.ts";

const ORIGIN = "agent:main:origin";
const READER = "agent:b:main";
const PAGE = labelFrom("outside", "web tea.example", 1);

/** Makes a session that has read a page, and a fork of it. Returns the fork, and its first own message. */
async function forkOrigin({ client, house, tell, ended }: Stage) {
  for (const text of ["Hello.", "I saw a zebra."]) await ended(await tell(text, ORIGIN));
  const { sessionId = "" } = (await getSession(house.store.db, ORIGIN)) ?? {};
  await house.store.transaction((tx) => addLabels(tx, { key: ORIGIN, sessionId }, PAGE, { at: 1 }));
  const { messages } = await client.request("chat.history", { sessionKey: ORIGIN, limit: 9 });
  const { key } = await client.request("sessions.fork", {
    sessionKey: ORIGIN,
    at: messages.at(-1)?.id ?? "",
  });
  const own = await client.request("chat.history", { sessionKey: key, limit: 1 });
  return { key, before: own.messages[0]?.id ?? "" };
}

async function sourcesIn({ house }: Stage, key: string, label: "outside" | "private") {
  const { labels } = (await getSession(house.store.db, key)) ?? {};
  return labels?.[label]?.map(({ source }) => source);
}

test("I15: the part that a fork shares with its origin brings the private text of the origin", async () => {
  const stage = await openStage();
  const { key, before } = await forkOrigin(stage);
  await stage.ended(await stage.guest(order("sessions_history", { sessionKey: key, before })));
  expect(await sourcesIn(stage, GUEST_SESSION, "private")).toContain(`session ${ORIGIN}`);
});

test("I15: the part that a fork shares keeps the labels of the fork after the origin was released", async () => {
  const stage = await openStage();
  const { key, before } = await forkOrigin(stage);
  await stage.client.request("labels.release", { sessionKey: ORIGIN });
  await stage.ended(await stage.tell(order("sessions_history", { sessionKey: key, before }), READER));
  expect(await sourcesIn(stage, READER, "outside")).toEqual(["web tea.example"]);
});

test.each([
  ["the history of a fork", "sessions_history"],
  ["a search in a fork", "sessions_search"],
])("I15: %s brings what its deleted origin had read from outside", async (_, tool) => {
  const stage = await openStage();
  const { key, before } = await forkOrigin(stage);
  await stage.client.request("sessions.delete", { key: ORIGIN });
  const args = tool === "sessions_search" ? { query: "zebra" } : { sessionKey: key, before };
  await stage.ended(await stage.tell(order(tool, args), READER));
  expect(await sourcesIn(stage, READER, "outside")).toEqual(["web tea.example"]);
});
