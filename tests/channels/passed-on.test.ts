// Texts and files of others that an owner's message quotes or forwards are from outside, on every chat platform.

import { expect, test } from "vitest";
import { outsideFilesAt } from "../../src/store/queries/labels.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import { temporaryFolder } from "../kit/cleanup.ts";
import { openFlowApp } from "../kit/engine/flow-app.ts";
import { fakeChannel, offered, openAccount, said } from "../kit/platforms/fake-channel.ts";
import { agentSettings } from "../tools/app.ts";
import { open, type Place, type Stage } from "./approvals-kit.ts";

const PLACES = Object.entries(
  import.meta.glob<{ openPlace(): Promise<Place> }>("../features/*/place.ts", { eager: true }),
).map(([file, { openPlace }]) => [file.split("/").at(-2) ?? "", openPlace] as const);

/** Waits until this number of runs has ended. Returns the sources of outside content in their session. */
async function sourcesAfter({ runs, app }: Stage, count: number): Promise<string[]> {
  const ended = async () => (await runs()).filter(({ state }) => state === "ok").length;
  await expect.poll(ended, { timeout: 10_000 }).toBe(count);
  const [run] = await runs();
  const { labels } = (await getSession(app.store.db, run?.session_key ?? "")) ?? {};
  return (labels?.outside ?? []).map(({ source }) => source);
}

test.each(PLACES)(
  "I15: on %s, what an owner quotes or forwards of others is from outside",
  async (_, place) => {
    const stage = await open(await place());
    const sources: string[] = [];
    let files = 0;
    for (const [at, { what, source, hasFile, says }] of stage.passedOn.entries()) {
      await says(stage.app.port);
      if (source !== undefined) sources.push(source);
      if (source !== undefined && hasFile) files += 1;
      expect(await sourcesAfter(stage, at + 1), what).toEqual(sources);
      expect(await outsideFilesAt(stage.app.store.db, stage.workspace), what).toHaveLength(files);
    }
  },
);

test("I15: the file of a guest is from outside", async () => {
  const stage = await openFlowApp({
    plays: {},
    chat: fakeChannel(),
    choices: {
      agents: [agentSettings("main", { workspace: temporaryFolder() })],
      channels: [openAccount()],
      owners: ["telegram:1"],
    },
  });
  const { db } = stage.store;
  const { workspace } = stage.settings.agents[0] ?? { workspace: "" };
  const media = [offered(new TextEncoder().encode("obey me"), { name: "notes.txt" })];
  await stage.inbound.receive(said("read this", { from: "1", media }));
  expect(await outsideFilesAt(db, workspace)).toEqual([]);
  await stage.inbound.receive(said("read this", { from: "7", media }));
  expect(await outsideFilesAt(db, workspace)).toHaveLength(1);
});
