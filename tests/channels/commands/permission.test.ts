// Owners answer agents' permission requests in their chats: the note that describes the request, and the
// commands.

import { expect, test } from "vitest";
import { readMarkdown } from "../../../src/channels/markdown.ts";
import type { FormField } from "../../../src/core/shapes/permission.ts";
import { listRules } from "../../../src/store/queries/permission-rules.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { askIn } from "../../kit/engine/asking.ts";
import type { SpawnPlay } from "../../kit/engine/spawn-app.ts";
import { until } from "../../kit/until.ts";
import { GROUP, MAIN, open, type Stage } from "./kit.ts";

/** The action of the agent, in Markdown. */
const QUOTED = "┃ rm \\-rf \\*build\\*";
const OWNER = { isOwner: true } as const;
const BY_CHAT = { channel: "telegram", to: "7", accountId: "default" } as const;

/**
 * Opens a stage whose main session spawns a sub-agent, which asks for permission and replies with the
 * decision.
 */
async function openAsking(): Promise<Stage> {
  const play: SpawnPlay = async ({ handle, input, session, tool }) => {
    const isJob = session.key.includes("subagent") && input.includes("clean up");
    if (isJob || input === "clean up here")
      return askIn({ engine: stage.engine }, handle, {
        title: "rm -rf *build*",
        about: { callId: undefined, folder: "/project", files: [] },
        rawInput: { command: "rm -rf build; folder: /tmp", why: "[see](x) _this_", "in: b": 1 },
      });
    if (input === "work") await tool("sessions_spawn", { task: "clean up" });
    return "NO_REPLY";
  };
  const stage: Stage = await open({ play });
  await stage.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: BY_CHAT }));
  return stage;
}

const notes = async ({ store }: Stage): Promise<{ text: string; to: string }[]> => {
  const rows = await store.db.selectFrom("deliveries").select(["id", "text", "route_json"]).execute();
  return rows
    .filter(({ id }) => id.startsWith("permission-"))
    .map(({ text, route_json }) => ({ text, to: JSON.parse(route_json).to }));
};

const idIn = (note: string | undefined): string | undefined => /\/allow ([0-9a-f]{8})/.exec(note ?? "")?.[1];

/** Returns the short id from the note that reached the chat. */
const askedId = (stage: Stage): Promise<string> => until(async () => idIn((await notes(stage))[0]?.text));

/** Returns the reply of the sub-agent's run. It is the decision. */
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
  expect(note?.to).toBe("7");
  expect(await stage.give("/approvals", OWNER)).toContain(`\`${id}\` \`main\`:\n${QUOTED}\n`);
  expect(await stage.give(`/allow ${id}`, OWNER)).toBe(`Allowed for \`main\`:\n${QUOTED}`);
  expect(await stage.give(`/deny ${id}`, OWNER)).toContain("There is no open permission request");
  expect(await childReply(stage)).toBe("allow");
  expect(await stage.give("/approvals", OWNER)).toBe("No permission request is open.");
});

test("a note shows title and arguments as plain text, not as Markdown", async () => {
  const stage = await openAsking();
  await stage.says("telegram:7", "work");
  await askedId(stage);
  const { text, marks } = readMarkdown((await notes(stage))[0]?.text ?? "");
  expect(text).toContain("Agent main asks for permission:\n┃ rm -rf *build*\n");
  expect(text).toContain('command: "rm -rf build; folder: /tmp"; why: [see](x) _this_; "in: b": 1');
  expect(marks).toEqual([]);
});

test("a note goes to the chat that requested the work, even if another person has written since", async () => {
  const stage = await openAsking();
  for (const [text, count] of [
    ["clean up here", 1],
    ["work", 2],
  ] as const) {
    const accepted = await stage.engine.accept({
      sessionKey: MAIN,
      input: { text, sender: "telegram:7" },
      route: BY_CHAT,
    });
    expect(accepted.ok).toBe(true);
    await stage.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: { ...BY_CHAT, to: "8" } }));
    await until(async () => (await notes(stage)).length === count);
    expect((await notes(stage)).map(({ to }) => to)).toEqual(Array(count).fill("7"));
    await stage.give(`/allow ${(await notes(stage)).map(({ text: note }) => idIn(note)).at(-1)}`, OWNER);
  }
});

test("only an owner can answer a request, and a group cannot list requests", async () => {
  const stage = await openAsking();
  await stage.says("telegram:7", "work");
  const id = await askedId(stage);
  for (const line of ["/approvals", `/allow ${id}`, `/deny ${id}`]) {
    expect(await stage.give(line)).toMatch(/^\/\w+ is for owners only\.$/);
  }
  const inGroup = { ...OWNER, chatType: "group", sessionKey: GROUP } as const;
  expect(await stage.give("/approvals", inGroup)).toBe("/approvals lists requests only in a direct chat.");
  expect(await stage.give("/deny", OWNER)).toContain("takes the id of one request");
  // In the answer the session is `main`, because the group may not see the session that asks.
  expect(await stage.give(`/deny ${id}`, inGroup)).toBe("Denied for `main`.");
  expect(await childReply(stage)).toBe("deny");
});

test("an owner allows a command for longer by a word and a confirmation, and undoes it; other words change nothing", async () => {
  const stage = await openAsking();
  await stage.says("telegram:7", "work");
  const id = await askedId(stage);
  expect((await notes(stage))[0]?.text).toContain("Add session or always after the id of /allow");
  for (const line of [`/allow ${id} forever`, `/allow ${id} always always`, `/deny ${id} always`])
    expect(await stage.give(line, OWNER)).toContain("takes the id of one request");
  const means = await stage.give(`/allow ${id} always`, OWNER);
  expect(means).toMatch(
    /^From now on agent main runs exactly this command without asking, in all its sessions/,
  );
  expect(means).toContain(`\n${QUOTED}\n\nNothing is allowed yet. To confirm: \`/allow ${id} always yes\``);
  expect(await listRules(stage.store.db)).toEqual([]);
  const done = await stage.give(`/allow ${id} always yes`, OWNER);
  expect(done.startsWith(`Allowed always for \`main\`:\n${QUOTED}\n\nUndo with /deny `)).toBe(true);
  expect(await childReply(stage)).toBe("allow");
  expect(await listRules(stage.store.db)).toMatchObject([{ scope: "always", agentId: "main" }]);
  const [, rule] = /\/deny (\S+)/.exec(done) ?? [];
  expect(await stage.give(`/deny ${rule}`)).toBe("/deny is for owners only.");
  expect(await stage.give(`/deny ${rule}`, OWNER)).toMatch(/^Undone for `main`\. /);
  expect(await listRules(stage.store.db)).toEqual([]);
});

/** Opens a stage whose main session passes on a question of an MCP server, and replies with the decision. */
async function openQuestion(fields: readonly FormField[]): Promise<Stage> {
  const play: SpawnPlay = async ({ handle, input }) =>
    input === "ask"
      ? askIn({ engine: stage.engine }, handle, {
          title: "MCP server shop asks: Which *size*?",
          kind: "elicitation",
          form: { server: "shop", fields },
        })
      : "NO_REPLY";
  const stage: Stage = await open({ play });
  await stage.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: BY_CHAT }));
  await stage.engine.accept({
    sessionKey: MAIN,
    input: { text: "ask", sender: "telegram:7" },
    route: BY_CHAT,
  });
  return stage;
}

const SIZE: FormField = {
  name: "size",
  title: "Size",
  type: "choice",
  required: true,
  options: [
    { value: "s", title: "Small_1" },
    { value: "l", title: "Large" },
  ],
};

const replyOf = (stage: Stage): Promise<string> =>
  until(async () => (await stage.runs(MAIN)).find(({ input }) => input.text === "ask")?.reply ?? false);

test("a question with one choice is answered in the chat by its number", async () => {
  const stage = await openQuestion([SIZE]);
  const id = await askedId(stage);
  const note = (await notes(stage))[0]?.text ?? "";
  expect(note).toContain(
    "A tool of agent main has a question:\n┃ MCP server shop asks\\: Which \\*size\\*\\?",
  );
  expect(note).toContain(`with /allow ${id} and a number (1 "Small\\_1", 2 "Large") or /deny ${id} within`);
  expect(await stage.give("/approvals", OWNER)).toContain(`Answer with /allow ${id} and a number (1 `);
  expect(await stage.give(`/allow ${id} 3`, OWNER)).toContain("There is no answer 3.");
  expect(await stage.give(`/allow ${id}`, OWNER)).toContain("has a form");
  expect(await stage.give(`/allow ${id} session`, OWNER)).toContain(
    "can't have the scope session, only: once",
  );
  expect(await stage.give(`/allow ${id} 2`)).toBe("/allow is for owners only.");
  expect(await stage.give(`/allow ${id} 2`, OWNER)).toContain("Allowed for `main`");
  expect(await replyOf(stage)).toBe("allow");
});

test("a question with more fields names the places where it is answered, and is declined in the chat", async () => {
  const stage = await openQuestion([SIZE, { ...SIZE, name: "other", type: "string" }]);
  const id = await until(
    async () => /\/deny ([0-9a-f]{8})/.exec((await notes(stage))[0]?.text ?? "")?.[1] ?? false,
  );
  const where = `in the inbox of the page, with npx parley-gateway permissions allow ${id}, or with /deny ${id}`;
  expect((await notes(stage))[0]?.text).toContain(`An owner answers ${where} within`);
  expect(await stage.give(`/allow ${id} 1`, OWNER)).toBe(`There is no answer 1. An owner answers ${where}.`);
  expect(await stage.give(`/deny ${id}`, OWNER)).toContain("Denied for `main`");
  expect(await replyOf(stage)).toBe("deny");
});
