// Asking for facts about files (tools/guidance/file-facts.ts).

import { mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { FileFacts } from "../../../src/tools/guidance/file-facts.ts";

test.each([
  ["on the event loop", 0],
  ["on another thread after a slow answer (FF1)", 5],
])("%s, it finds the same facts", async (_, msAnAnswer) => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "parley-facts-")));
  onTestFinished(() => rm(folder, { recursive: true }));
  const link = join(folder, "link");
  await symlink(folder, link);
  let now = 0;
  const facts = new FileFacts(() => {
    now += msAnAnswer;
    return now;
  });

  for (let times = 0; times < 2; times += 1) {
    expect(await facts.realPath(link)).toBe(folder);
    expect((await facts.status(link))?.isDirectory()).toBe(true);
    expect(await facts.status(join(folder, "none"))).toBeUndefined();
    expect(await facts.realPath(join(folder, "none", "below"))).toBeUndefined();
    expect(await facts.status(`${folder}/\0`)).toBeUndefined();
  }
});
