// Announcements of sends and sub-agents arrive in the chat of a session's people: channel, account and
// thread.

import { expect, test } from "vitest";
import type { Route } from "../../../src/core/shapes/route.ts";
import type { SendRule } from "../../../src/core/shapes/settings/settings.ts";
import { insertSession, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { sessionRow } from "../../kit/engine/engine.ts";
import { openSpawnApp, type SpawnApp, type SpawnPlay } from "../../kit/engine/spawn-app.ts";
import { type PeopleChannel, peopleChannel, telegramAccount } from "../../kit/platforms/people-channel.ts";
import { settingsWith } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const ASKER = "agent:research:main";
const group = { kind: "group", groupChannel: "telegram" } as const;
const at = (to: string, more: Partial<Route> = {}): Route => ({
  ...{ channel: "telegram", to, accountId: "two" },
  ...more,
});

/** Each row: a session, the last route of its people, and the route of its announcements. */
const PLACES: readonly (readonly [string, string, Route | undefined, Route])[] = [
  ["a group", "agent:main:telegram:group:-100", at("-100"), at("-100")],
  [
    "a group that nobody wrote in",
    "agent:main:telegram:group:-101",
    undefined,
    { channel: "telegram", to: "-101" },
  ],
  ["a room", "agent:main:telegram:channel:-200", at("-200"), at("-200")],
  [
    "a topic",
    "agent:main:telegram:group:-100:topic:5",
    at("-100", { threadId: "5" }),
    at("-100", { threadId: "5" }),
  ],
  [
    "a thread that nobody wrote in",
    "agent:main:telegram:channel:-200:thread:9",
    undefined,
    { channel: "telegram", to: "-200", threadId: "9" },
  ],
  ["a person of one's own", "agent:main:telegram:dm:7", at("7"), at("7")],
  ["the person of a main session", MAIN, at("7"), at("7")],
];

interface Stage extends SpawnApp {
  readonly people: PeopleChannel;
}

async function open(play: SpawnPlay, rules: readonly SendRule[] = []): Promise<Stage> {
  const people = peopleChannel(["one", "two"]);
  const settings = settingsWith({
    channels: [telegramAccount("one"), telegramAccount("two")],
    session: { sendPolicy: { rules, default: "allow" } },
  });
  const app = await openSpawnApp({ settings, play, channels: [people] });
  for (const [, key, lastRoute] of PLACES) {
    const known = (await app.session(key)) !== undefined;
    await app.store.transaction(async (tx) => {
      if (!known) await insertSession(tx, sessionRow(key, key === MAIN ? {} : group));
      if (lastRoute !== undefined) await updateSession(tx, key, { lastRoute });
    });
  }
  return { ...app, people };
}

const talk: SpawnPlay = async (turn) => {
  if (turn.step === "announce") return "What came of it.";
  if (turn.input.startsWith("spawn")) await turn.tool("sessions_spawn", { task: "dig" });
  return turn.input.startsWith("ask") ? "REPLY_SKIP" : "Done.";
};

test.each(PLACES)(
  "the result of a sub-agent is posted to %s, with its account and thread",
  async (_, key, __, route) => {
    const app = await open(talk);
    await app.tell(key, "spawn one");
    await app.quiet();
    expect(app.people.sent.map((message) => message.route)).toEqual([route]);
    expect(app.people.sent[0]?.text).toContain("Status: ok");
  },
);

test.each(PLACES)(
  "if the destination of %s was removed, the delivery fails, and operators see it",
  async (_, key, __, route) => {
    const app = await open(talk);
    app.people.gone.add(route.to);
    await app.tell(key, "spawn one");
    await app.call(ASKER, "sessions_send", { sessionKey: key, message: "how is it?", timeoutSeconds: 0 });
    await app.quiet();
    const rows = await app.store.db
      .selectFrom("deliveries")
      .select(["state", "code", "error", "kind"])
      .execute();
    expect(rows).toHaveLength(2);
    for (const row of rows) {
      expect(row).toEqual({ state: "failed", code: "refused", error: "chat not found", kind: "announce" });
    }
  },
);

const DENIED: readonly (readonly [SendRule["match"], string])[] = [
  [{ chatType: "group" }, "agent:main:telegram:group:-100"],
  [{ chatType: "room" }, "agent:main:telegram:channel:-200"],
  [{ chatType: "thread" }, "agent:main:telegram:group:-100:topic:5"],
  [{ chatType: "direct" }, MAIN],
];

test.each(DENIED)(
  "if a rule denies a delivery for %o, the delivery is skipped, and its text stays in the transcript",
  async (match, key) => {
    const app = await open(talk, [{ match, action: "deny" }]);
    await app.tell(key, "spawn one");
    await app.quiet();
    expect(app.people.sent).toEqual([]);
    const rows = await app.store.db.selectFrom("deliveries").select(["state", "code"]).execute();
    expect(rows).toEqual([{ state: "skipped", code: "send_denied" }]);
    expect((await app.texts(key)).join("\n")).toContain("Status: ok");
  },
);
