// Checks the disk at the end of a story: each existing transcript has a JSONL copy, and no unneeded file is
// left.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Story } from "../../story.ts";
import type { Books } from "./books.ts";

function checkCopies(story: Story, books: Books, dir: string): void {
  const bySession = Map.groupBy(books.messages, (message) => message.sessionId);
  for (const [sessionId, messages] of bySession) {
    const file = join(dir, `${sessionId}.jsonl`);
    if (!existsSync(file)) story.wrong("mirror", `there is no copy of ${sessionId}`);
    const [header = "", ...lines] = readFileSync(file, "utf8").trimEnd().split("\n");
    if (JSON.parse(header).id !== sessionId)
      story.wrong("mirror", `the copy of ${sessionId} begins with ${header}`);
    const expected = messages.map((message) => message.json);
    if (lines.join("\n") !== expected.join("\n"))
      story.wrong(
        "mirror",
        `the copy of ${sessionId} has ${lines.length} of ${expected.length} lines, or others`,
      );
  }
  for (const name of readdirSync(dir)) {
    const id = /^(.*)\.jsonl$/.exec(name)?.[1];
    if (id !== undefined && !books.transcripts.has(id))
      story.wrong("mirror", `the copy of ${id} is left behind`);
  }
}

function checkAttachments(story: Story, books: Books, workspace: string): void {
  const { agents } = story.plan.lastSettings;
  const folder = join(workspace, ".parley", "attachments");
  const kept = new Set(
    [...books.sessions.values()].flatMap(({ spawn }) =>
      spawn?.attachments !== undefined && spawn.retainAttachments === true ? [spawn.attachments.dir] : [],
    ),
  );
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const dir = `.parley/attachments/${name}`;
    // Folders are named after runs. The workspaces of agents that are not configured are unknown.
    const owner = books.runOf.get(name)?.sessionKey ?? "";
    if (owner !== "" && !agents.some(({ id }) => owner.startsWith(`agent:${id}:`))) continue;
    if (!kept.has(dir)) story.wrong("attachments", `${dir} is left, and nobody needs it`);
  }
}

export function checkFiles(story: Story, books: Books): void {
  const { store, agents } = story.plan.lastSettings;
  checkCopies(story, books, store.dir);
  checkAttachments(story, books, agents[0]?.workspace ?? "");
}
