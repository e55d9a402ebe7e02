// A run without labels asks the database nothing more because labels exist: what it needs to know comes with
// statements that it makes anyway.

import { StatementSync } from "node:sqlite";
import { expect, test } from "vitest";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import { lastMessages } from "../../src/store/queries/transcripts/transcripts.ts";
import { cleanup } from "../kit/cleanup.ts";
import { MAIN, openStage, order, type Stage } from "./stage.ts";

/** Calls to which the labels of the caller, of another session or of a file matter. */
const CALLS: Readonly<Record<string, string>> = {
  "send and wait": order("sessions_send", {
    sessionKey: "agent:b:main",
    message: "hello",
    timeoutSeconds: 30,
  }),
  spawn: order("sessions_spawn", { task: "hello" }),
  history: order("sessions_history", { sessionKey: "agent:b:main" }),
  search: order("sessions_search", { query: "hello" }),
  list: order("sessions_list", { messageLimit: 2 }),
  status: order("session_status", {}),
  write: order("write", { path: "plan.md", content: "one" }),
  job: order("cron", { action: "add", every: "1h", message: "hello" }),
};

/** Starts to collect the texts of statements. */
function collectStatements(): string[] {
  const texts: string[] = [];
  const { prototype } = StatementSync;
  for (const name of ["all", "run"] as const) {
    const plain = prototype[name] as (...values: unknown[]) => unknown;
    prototype[name] = function collected(this: StatementSync, ...values: unknown[]) {
      texts.push(this.sourceSQL);
      return plain.apply(this, values);
    } as never;
    cleanup(() => {
      prototype[name] = plain as never;
    });
  }
  return texts;
}

/** Returns whether a statement reads or writes nothing but what labels need. */
const isAboutLabels = (text: string): boolean =>
  /^\s*select\s+"?(?:\w+"?\.")?labels_json"?\s+from/i.test(text) ||
  /(?:from|into|update)\s+"?(?:label_decisions|outside_files)"?/i.test(
    text.replaceAll(/\(select.*?\)/gs, ""),
  );

async function statementsOf(stage: Stage, call: string): Promise<string[]> {
  const texts = collectStatements();
  await stage.ended(await stage.tell(call));
  return texts;
}

test.each(Object.entries(CALLS))(
  "a run without labels makes no statement about labels: %s",
  async (_, call) => {
    const stage = await openStage({ labels: { public: ["session *"] } });
    const texts = await statementsOf(stage, call);
    const { db } = stage.house.store;
    const session = await getSession(db, MAIN);
    expect(session?.labels).toBeUndefined();
    const messages = await lastMessages(db, session?.sessionId ?? "", 50, { includeTools: true });
    expect(messages.find(({ role }) => role === "toolResult")).toMatchObject({ isError: false });
    expect(texts.filter(isAboutLabels)).toEqual([]);
  },
);

test("a run with labels does", async () => {
  const stage = await openStage({ page: () => "news" });
  await stage.ended(await stage.tell(order("fetch", { url: stage.evil.url("/page") })));
  const texts = await statementsOf(stage, order("write", { path: "plan.md", content: "one" }));
  expect(texts.filter(isAboutLabels)).not.toEqual([]);
});
