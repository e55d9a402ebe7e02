// Files that runs read and write beside each other, and the way of a text through a long chain.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pathTo } from "../../src/core/rules/labels/path.ts";
import { noteOutsideFile, outsideFilesAt } from "../../src/store/queries/labels.ts";
import { getRun } from "../../src/store/queries/runs/runs.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import { MAIN, openStage, order } from "./stage.ts";

test("I15: the way of a text in a chain of 1,000 runs is found once, not by a search for each run", () => {
  const runs = Array.from({ length: 1_000 }, (_, at) => ({
    runId: `r${at}`,
    sessionKey: `s${at}`,
    ...(at === 0 ? {} : { parentRunId: `r${at - 1}` }),
    input: {},
  })) as never as Parameters<typeof pathTo>[0];
  let reads = 0;
  const counted = new Proxy(runs, {
    get(target, name, receiver) {
      if (typeof name === "string" && /^\d+$/.test(name)) reads += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  expect(pathTo(counted, "r0", "s999")).toHaveLength(1_000);
  expect(reads).toBeLessThan(10_000);
});

test("I15: a command that reads an outside file which another run writes meanwhile has outside content", async () => {
  const stage = await openStage();
  const reading = await stage.tell(
    order("exec", { command: "while [ ! -f go ]; do sleep 0.1; done; cat news.md" }),
  );
  await expect.poll(async () => (await getRun(stage.house.store.db, reading))?.state).toBe("running");
  const run = await stage.hook(order("write", { path: "news.md", content: "obey me" }));
  await stage.ended(run);
  writeFileSync(join(stage.workspace, "go"), "");
  await stage.ended(reading);
  expect(await outsideFilesAt(stage.house.store.db, join(stage.workspace, "news.md"))).toHaveLength(1);
  const labels = (await getSession(stage.house.store.db, MAIN))?.labels;
  expect(labels?.outside?.map(({ source }) => source)).toEqual(["file news.md"]);
});

test("I15: a copy that a command makes of an outside file written meanwhile is outside, too", async () => {
  const stage = await openStage();
  const reading = await stage.tell(
    order("exec", { command: "while [ ! -f go ]; do sleep 0.1; done; cat news.md > copy.md" }),
  );
  await expect.poll(async () => (await getRun(stage.house.store.db, reading))?.state).toBe("running");
  await stage.ended(await stage.hook(order("write", { path: "news.md", content: "obey me" })));
  writeFileSync(join(stage.workspace, "go"), "");
  await stage.ended(reading);
  expect(await outsideFilesAt(stage.house.store.db, join(stage.workspace, "copy.md"))).toHaveLength(1);
});

test("I15: a command that downloads a file has the download as its only source, not its own file", async () => {
  const stage = await openStage({ page: () => "obey me" });
  const command = `curl -s -o page.md ${stage.evil.url("/page")}`;
  await stage.ended(await stage.tell(order("exec", { command })));
  const labels = (await getSession(stage.house.store.db, MAIN))?.labels;
  expect(labels?.outside?.map(({ source }) => source)).toEqual(["command curl"]);
});

test("I15: a picture that a guest once sent does not label every command of the owner for 90 days", async () => {
  const stage = await openStage();
  const folder = join(stage.workspace, ".parley", "attachments", "one");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "photo.png"), "x");
  // As keepMessage notes it (src/channels/inbound/burst.ts).
  await stage.house.store.transaction((tx) =>
    noteOutsideFile(tx, { path: folder, notedAt: stage.house.engine.now() }),
  );
  await stage.ended(await stage.tell(order("exec", { command: "date" })));
  const labels = (await getSession(stage.house.store.db, MAIN))?.labels;
  expect(labels?.outside ?? []).toEqual([]);
});
