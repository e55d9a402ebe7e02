// Owners answer permission requests of agents in their chats: the note with the request, and the commands.

import { expect, test } from "vitest";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { askIn } from "../../kit/engine/asking.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import type { SpawnPlay } from "../../kit/engine/spawn-app.ts";
import { until } from "../../kit/until.ts";
import { GROUP, MAIN, open, type Stage } from "./kit.ts";

const OWNER = { isOwner: true } as const;
const BY_CHAT = { channel: "telegram", to: "7", accountId: "default" } as const;

/** A stage whose main session spawns a sub-agent, which asks for permission and reports the decision. */
async function openAsking(): Promise<Stage> {
  const play: SpawnPlay = async ({ handle, input, session, tool }) => {
    if (session.key.includes("subagent") && input.includes("clean up"))
      return askIn({ engine: stage.engine, world: quietWorld() }, handle, {
        title: "rm -rf *build*",
        rawInput: { command: "rm -rf build" },
      });
    if (input === "work") await tool("sessions_spawn", { task: "clean up" });
    return "NO_REPLY";
  };
  const stage: Stage = await open({ play });
  await stage.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: BY_CHAT }));
  return stage;
}

const notes = async ({ store }: Stage) =>
  (await store.db.selectFrom("deliveries").select(["id", "text"]).execute()).filter(({ id }) =>
    id.startsWith("permission-"),
  );

/** The short id in the note that reached the chat. */
const askedId = (stage: Stage): Promise<string> =>
  until(async () => /\/allow ([0-9a-f]{8})/.exec((await notes(stage))[0]?.text ?? "")?.[1]);

/** The reply of the sub-agent's run, which is the decision. */
const childReply = (stage: Stage): Promise<string> =>
  until(async () => {
    const [child] = await stage.children(MAIN);
    const [run] = child === undefined ? [] : await stage.runs(child.key);
    return run?.endedAt !== undefined && run.reply;
  });

test("a sub-agent's request reaches the chat of its requester, and an owner allows it there", async () => {
  const stage = await openAsking();
  await stage.says("telegram:7", "work");
  const id = await askedId(stage);
  const [note, ...more] = await notes(stage);
  expect(more).toEqual([]);
  expect(note?.text).toContain("Agent main asks for permission: rm -rf *build*");
  expect(note?.text).toContain('{"command":"rm -rf build"}');
  expect(await stage.give("/approvals", OWNER)).toContain(`\`${id}\` \`main\`: rm -rf \\*build\\*`);
  expect(await stage.give(`/allow ${id}`, OWNER)).toBe("Allowed for `main`: rm -rf \\*build\\*");
  expect(await stage.give(`/deny ${id}`, OWNER)).toContain("There is no open permission request");
  expect(await childReply(stage)).toBe("allow");
  expect(await stage.give("/approvals", OWNER)).toBe("No permission request is open.");
});

test("only an owner answers a request, and a group gets no list of them", async () => {
  const stage = await openAsking();
  await stage.says("telegram:7", "work");
  const id = await askedId(stage);
  for (const line of ["/approvals", `/allow ${id}`, `/deny ${id}`]) {
    expect(await stage.give(line)).toMatch(/^\/\w+ is for owners only\.$/);
  }
  const inGroup = { ...OWNER, chatType: "group", sessionKey: GROUP } as const;
  expect(await stage.give("/approvals", inGroup)).toBe("/approvals lists requests only in a direct chat.");
  expect(await stage.give("/deny", OWNER)).toContain("takes the id of one request");
  expect(await stage.give(`/deny ${id}`, inGroup)).toContain("Denied for `main`");
  expect(await childReply(stage)).toBe("deny");
});
