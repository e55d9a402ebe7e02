// Transcripts: entries are appended once, read in pages, and searched.

import * as fc from "fast-check";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { optional } from "../../src/core/optional.ts";
import type { Scope } from "../../src/core/rules/visibility.ts";
import { type Entry, type Message, textOf, ZERO_USAGE } from "../../src/core/shapes/message.ts";
import { insertFlow } from "../../src/store/queries/chains/flows.ts";
import { factsOfLane, factsOfRuns } from "../../src/store/queries/runs/run-facts.ts";
import { endRun, insertRun } from "../../src/store/queries/runs/runs.ts";
import {
  earlierConversations,
  hadTranscript,
} from "../../src/store/queries/sessions/earlier-conversations.ts";
import {
  deleteSessionRows,
  insertSession,
  replaceSessionId,
  updateSession,
} from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry, type NewEntry } from "../../src/store/queries/transcripts/append.ts";
import { firstUserTexts } from "../../src/store/queries/transcripts/first-texts.ts";
import { searchTranscripts } from "../../src/store/queries/transcripts/transcript-search.ts";
import * as transcripts from "../../src/store/queries/transcripts/transcripts.ts";
import type { Store } from "../../src/store/sql.ts";
import { anyCharacter } from "../fuzz/nasty.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { assistantMessage, sampleRun, sampleSession, toolResult, userMessage } from "../store/samples.ts";

const ALL: Scope = { all: true };

export function transcriptContract(store: () => Store): void {
  const makeSession = (over: Parameters<typeof sampleSession>[0] = {}) =>
    store().transaction((tx) => insertSession(tx, sampleSession(over)));
  const append = (entries: readonly Entry[], over: Partial<NewEntry> = {}) =>
    store().transaction(async (tx) => {
      for (const entry of entries) {
        const place = { sessionKey: "agent:main:main", sessionId: "session-1", ...over };
        await appendEntry(tx, { ...place, entry }, plainRedactor);
      }
    });
  const ids = (messages: readonly { id: string }[]) => messages.map(({ id }) => id);
  const history = async (more: Partial<transcripts.HistoryWanted> = {}) => {
    const wanted = { sessionId: "session-1", limit: 50, includeTools: true, ...more };
    const page = await transcripts.readHistory(store().db, wanted);
    if (!page.ok) throw new Error(page.error);
    return page.value;
  };
  const search = async (query: string, more: Partial<Parameters<typeof searchTranscripts>[1]> = {}) =>
    (
      await searchTranscripts(store().db, { query, scope: ALL, redactor: plainRedactor, limit: 50, ...more })
    ).hits.map((hit) => hit.messageId);

  readingContract({ store, append, ids, history });
  longTextContract({
    store,
    append: (entries) => makeSession().then(() => append(entries)),
    search,
  });

  test("I14: a secret in a transcript is not in the search index, so searching for it finds nothing", async () => {
    await makeSession();
    const key = "sk-ant-api03-Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8";
    await append([userMessage("m1", `my key is ${key} keep it`)]);
    expect(await search("Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8")).toEqual([]);
    expect(await search("sk-ant-api03-Zq8")).toEqual([]);
    expect(await search("keep")).toEqual(["m1"]);
    expect(textOf((await transcripts.readContext(store().db, "session-1"))[0] as Message)).toContain(key);
  });

  test("a search requires all words, in upper or lower case and any order, also as prefixes", async () => {
    await makeSession();
    await append([
      userMessage("m1", "Please deploy the Gateway to staging"),
      assistantMessage("m2", "The gateway was deployed."),
      toolResult("m3", "gateway deploy log"),
      userMessage("m4", "明日は会議室で会いましょう"),
      userMessage("m5", "über Zürich"),
    ]);
    expect(await search("GATEWAY depl")).toEqual(["m2", "m1"]);
    expect(await search("staging gateway")).toEqual(["m1"]);
    expect(await search("eploy")).toEqual([]);
    expect(await search("会議")).toEqual(["m4"]);
    expect(await search("zurich")).toEqual(["m5"]);
    expect(await search("")).toEqual([]);
    expect(await search('"" * ( ) ^ -')).toEqual([]);
  });

  test("accents on a-z, variants of a letter and missing spaces do not matter for a match", async () => {
    await makeSession();
    await append([
      userMessage("m1", "Crème brûlée, naïve café; Ångström"),
      userMessage("m2", "ΟΔΟΣ και οδός"),
      userMessage("m3", "東京都に住んでいます。カタカナ"),
      userMessage("m4", "don't use e-mail v1.2.3 for foo_bar"),
      userMessage("m5", "한국어 텍스트"),
      userMessage("m6", "Ёлка и йод"),
    ]);
    const asked: Record<string, string[]> = {
      ...{ "creme brulee": ["m1"], CRÈME: ["m1"], "cafe\u0301": ["m1"], angstr: ["m1"] },
      ...{ οδος: ["m2"], ΟΔΟΣ: ["m2"], ὁδος: [] },
      ...{ 京都: ["m3"], 都京: [], カタ: ["m3"], 住んで: ["m3"] },
      ...{
        "don't": ["m4"],
        "use e-mail": ["m4"],
        "mail e": ["m4"],
        "mail-e": [],
        "v1.2": ["m4"],
        "1.2": [],
        foo_b: ["m4"],
      },
      ...{ 한국어: ["m5"], 텍스트: ["m5"], 국어: [], ёлка: ["m6"], йод: ["m6"], иод: [] },
      ...{ us: [], use: ["m4"], e: ["m4"] },
    };
    const found = Object.fromEntries(
      await Promise.all(Object.keys(asked).map(async (query) => [query, await search(query)])),
    );
    expect(found).toEqual(asked);
  });

  test("a long text is indexed to its end, with its phrases, even if parts of the text are equal", async () => {
    await makeSession();
    const words = Array.from({ length: 40_000 }, (_, n) => `w${n}`).join(" ");
    await append([
      userMessage("m1", `early-bird ${words} late-train ${"the end ".repeat(400)} over-and-out`),
      userMessage("m2", `${"のはがを".repeat(3_000)}最後の言葉`),
      userMessage("m3", `${"哈".repeat(2_000)} ${"y".repeat(5_000)}`),
      userMessage("m4", "early late"),
    ]);
    const asked: Record<string, string[]> = {
      ...{ w39999: ["m1"], "early-bird late-train": ["m1"], "bird-late": [], "w20000-w20001": ["m1"] },
      ...{ "w16000-w16001 w15937-w15938 w31999-w32000": ["m1"], "w20000-w20002": [] },
      ...{ "over-and-out early-bird the-end": ["m1"], "end-the": ["m1"], "end-over": ["m1"] },
      ...{
        最後の言葉: ["m2"],
        "最後 言葉": ["m2"],
        言葉最: [],
        哈哈哈: ["m3"],
        [`${"y".repeat(900)}`]: ["m3"],
      },
      ...{ early: ["m4", "m1"], "early late": ["m4", "m1"] },
    };
    const found = Object.fromEntries(
      await Promise.all(Object.keys(asked).map(async (query) => [query, await search(query)])),
    );
    expect(found).toEqual(asked);
    const page = await searchTranscripts(store().db, {
      query: "early late",
      scope: ALL,
      redactor: plainRedactor,
      limit: 1,
    });
    expect(page.hits.map((hit) => hit.messageId)).toEqual(["m4"]);
    expect(await search("early late", { cursor: String(page.nextCursor) })).toEqual(["m1"]);
  });

  test("a deleted message can no longer be found", async () => {
    await makeSession();
    await append([userMessage("m1", "needle"), toolResult("m2", "out")]);
    await store().transaction((tx) => deleteSessionRows(tx, "agent:main:main", { transcripts: true }));
    await makeSession({ sessionId: "session-2" });
    await append([userMessage("m3", "needle")], { sessionId: "session-2" });
    expect(await search("needle")).toEqual(["m3"]);
    const rows = await sql<{ n: number }>`select count(*) as n from message_texts`.execute(store().db);
    expect(rows.rows).toEqual([{ n: 1 }]);
  });

  test("a search text is only data: no part of it is interpreted as query syntax", async () => {
    await makeSession();
    await append([userMessage("m1", "alpha NEAR beta AND text place")]);
    for (const hostile of [
      'alpha" OR "zzz',
      "alpha NOT beta",
      "place : alpha",
      "{text} : zzz",
      "NEAR(alpha zzz)",
      "al*pha",
    ]) {
      await search(hostile);
    }
    expect(await search('alpha" OR "zzz')).toEqual([]);
    expect(await search("alpha AND beta")).toEqual(["m1"]);
    expect(await search("alpha NOT beta")).toEqual([]);
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: anyCharacter, maxLength: 60 }), async (query) => {
        await search(query);
        await search(`alpha ${query}`);
      }),
      { numRuns: 300 },
    );
  });

  test("a search omits archived sessions and those outside the scope, and includes messages from before a reset", async () => {
    await makeSession();
    await makeSession({ key: "agent:research:main", sessionId: "s2", agentId: "research" });
    await makeSession({ key: "child", sessionId: "s3", agentId: "research", spawnedBy: "agent:main:main" });
    await append([userMessage("m1", "needle")]);
    await append([userMessage("m2", "needle")], { sessionKey: "agent:research:main", sessionId: "s2" });
    await append([userMessage("m3", "needle")], { sessionKey: "child", sessionId: "s3" });
    const self = "agent:main:main";
    expect(await search("needle", { scope: { all: false, self } })).toEqual(["m1"]);
    expect(await search("needle", { scope: { all: false, self, treeOf: self } })).toEqual(["m3", "m1"]);
    expect(await search("needle", { scope: { all: false, agentIds: ["research"] } })).toEqual(["m3", "m2"]);
    expect(await search("needle", { scope: { all: false, agentIds: "any", patterns: ["agent:*"] } })).toEqual(
      ["m2", "m1"],
    );
    expect(await search("needle", { scope: { all: false } })).toEqual([]);
    expect(await search("needle", { agentId: "research" })).toEqual(["m3", "m2"]);
    expect(await search("needle", { sessionKey: "child" })).toEqual(["m3"]);
    await store().transaction(async (tx) => {
      await updateSession(tx, "child", { archivedAt: 5 });
      await replaceSessionId(tx, "agent:research:main", "s9", 5);
    });
    expect(await search("needle")).toEqual(["m2", "m1"]);
    const asked = { query: "needle", scope: ALL, limit: 3, redactor: plainRedactor };
    const { hits } = await searchTranscripts(store().db, asked);
    expect(hits.map(({ earlier }) => earlier)).toEqual([true, undefined]);
    const reset = { key: "agent:research:main", sessionId: "s9" };
    const listed = await earlierConversations(store().db, reset, 5);
    expect(listed).toMatchObject([{ sessionId: "s2", endedAt: 1_000, messages: 1 }]);
    expect(await earlierConversations(store().db, { key: self, sessionId: "session-1" }, 5)).toEqual([]);
    expect(await hadTranscript(store().db, reset.key, "s2")).toBe(true);
    expect(await hadTranscript(store().db, self, "s2")).toBe(false);
  });

  test("a search returns pages, newest first, with the context of each match", async () => {
    await makeSession();
    const long = `${"before ".repeat(50)}needle\nhere${" after".repeat(100)}`;
    await append(Array.from({ length: 5 }, (_, n) => userMessage(`m${n}`, n === 4 ? long : `needle ${n}`)));
    const first = await searchTranscripts(store().db, {
      query: "needle",
      scope: ALL,
      redactor: plainRedactor,
      limit: 3,
    });
    expect(ids(first.hits.map((hit) => ({ id: hit.messageId })))).toEqual(["m4", "m3", "m2"]);
    expect(first.hits[0]?.excerpt).toMatch(/^….*needle here after.*…$/);
    expect(first.hits[1]).toEqual({
      ...{ sessionKey: "agent:main:main", sessionId: "session-1", messageId: "m3", role: "user" },
      ...{ author: { kind: "person" }, timestamp: 1_000, excerpt: "needle 3" },
    });
    const { nextCursor } = first;
    if (nextCursor === undefined) throw new Error("a second page was expected");
    const rest = await searchTranscripts(store().db, {
      query: "needle",
      scope: ALL,
      redactor: plainRedactor,
      limit: 3,
      cursor: nextCursor,
    });
    expect(ids(rest.hits.map((hit) => ({ id: hit.messageId })))).toEqual(["m1", "m0"]);
    expect(rest.nextCursor).toBeUndefined();
    expect(await search("needle", { cursor: "no cursor" })).toEqual([]);
  });
}

interface Searching extends Pick<Reading, "store"> {
  /** Appends to an existing session. */
  append(entries: readonly Entry[]): Promise<void>;
  search(query: string, more?: { limit: number }): Promise<string[]>;
}

/** Searches in long texts. The parts of a long text are indexed separately. */
function longTextContract({ store, append, search }: Searching): void {
  const words = Array.from({ length: 60_000 }, (_, at) => `w${at}`);
  const texts = () => [
    userMessage("words", `${words.join(" ")} the end`),
    userMessage("signs", `${"東京 ".repeat(40_000)}大阪`),
    userMessage("short", "w7 and the end"),
  ];

  test("X3: a word is found anywhere in a long text, and a phrase is found even across parts", async () => {
    await append(texts());
    expect(await search("w0")).toEqual(["words"]);
    expect(await search("w59999 w12 w31415")).toEqual(["words"]);
    expect(await search("w59999 nowhere")).toEqual([]);
    expect(await search("w7 end")).toEqual(["short", "words"]);
    expect(await search("京東京東京東京")).toEqual(["signs"]);
    expect(await search("京大阪")).toEqual(["signs"]);
    expect(await search("阪京")).toEqual([]);
    const [hit] = await search("w7 end", { limit: 1 });
    expect(hit).toBe("short");
  });

  test("X3: a deleted long text can no longer be found", async () => {
    await append(texts());
    await store().transaction((tx) => tx.deleteFrom("messages").where("id", "!=", "short").execute());
    expect(await search("w7")).toEqual(["short"]);
    expect(await search("東京")).toEqual([]);
  });
}

interface Reading {
  store(): Store;
  append(entries: readonly Entry[], over?: Partial<NewEntry>): Promise<void>;
  ids(messages: readonly { id: string }[]): string[];
  history(more?: Partial<transcripts.HistoryWanted>): Promise<transcripts.HistoryPage>;
}

function readingContract({ store, append, ids, history }: Reading): void {
  const db = () => store().db;

  test("T1: a second result of the same tool call is not stored; the store returns the first one", async () => {
    const results = ["first", "second"].map((text) => ({ ...toolResult("message:0", text) }));
    const stored = await store().transaction((tx) =>
      Promise.all(
        results.map((entry) =>
          appendEntry(tx, { sessionKey: "agent:main:main", sessionId: "session-1", entry }, plainRedactor),
        ),
      ),
    );
    expect(stored.map((entry) => textOf(entry as Message))).toEqual(["first", "first"]);
    expect((await history()).messages.map(textOf)).toEqual(["first"]);
  });

  test("an entry is stored once: the same id again changes nothing", async () => {
    await append([userMessage("m1", "first"), userMessage("m1", "second")]);
    expect((await history()).messages).toEqual([userMessage("m1", "first")]);
  });

  test("a message is returned exactly as it was stored, whatever it contains", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: anyCharacter }), fc.uuid(), async (text, id) => {
        const message = { ...userMessage(id, text), senderName: text };
        await append([message], { sessionId: id });
        expect(await transcripts.lastMessages(db(), id, 1, { includeTools: true })).toEqual([message]);
      }),
    );
  });

  test("all pages of a history, from the newest back, contain every message once and in order", async () => {
    const messages: Message[] = Array.from({ length: 11 }, (_, n) =>
      n % 3 === 2 ? toolResult(`m${n}`, "out") : userMessage(`m${n}`, `text ${n}`),
    );
    await append(messages);
    for (const includeTools of [true, false]) {
      const wanted = messages.filter((message) => includeTools || message.role !== "toolResult");
      const seen: Message[] = [];
      let before: string | undefined;
      do {
        const page = await history({ limit: 3, includeTools, ...optional({ before }) });
        seen.unshift(...page.messages);
        before = page.nextBefore;
        if (before !== undefined) expect(before).toBe(page.messages[0]?.id);
      } while (before !== undefined);
      expect(seen).toEqual(wanted);
    }
  });

  test("pages after a message lead to the newest message, and a page may begin with a given message", async () => {
    const messages: Message[] = Array.from({ length: 11 }, (_, n) =>
      n % 3 === 2 ? toolResult(`m${n}`, "out") : userMessage(`m${n}`, `text ${n}`),
    );
    await append(messages, { runId: "r1" });
    await append([{ id: "c1", type: "compaction", summary: "s", firstKeptId: "m4", timestamp: 1 }]);
    for (const includeTools of [true, false]) {
      const wanted = messages.filter((message) => includeTools || message.role !== "toolResult");
      const first = await history({ limit: 3, includeTools, from: "m0" });
      expect(first.nextBefore).toBeUndefined();
      const seen = [...first.messages];
      let after = first.nextAfter;
      while (after !== undefined) {
        expect(after).toBe(seen.at(-1)?.id);
        const page = await history({ limit: 3, includeTools, after });
        expect(page.nextBefore).toBe(page.messages[0]?.id);
        seen.push(...page.messages);
        after = page.nextAfter;
      }
      expect(seen).toEqual(wanted);
    }
    const middle = await history({ limit: 2, from: "m5" });
    expect(middle).toMatchObject({ nextBefore: "m5", nextAfter: "m6" });
    expect([ids(middle.messages), middle.runIds.get("m5")]).toEqual([["m5", "m6"], "r1"]);
    const before = await history({ limit: 2, before: "m5" });
    expect(before).toMatchObject({ nextBefore: "m3", nextAfter: "m4" });
    expect((await history({ after: "m10" })).messages).toEqual([]);
  });

  test("history contains facts about runs: the outcome, the step of a flow, and the queue of the lane", async () => {
    const ended = { state: "error", endedAt: 9, code: "run_failed", error: "no luck" } as const;
    await store().transaction(async (tx) => {
      await insertFlow(tx, {
        ...{ flowId: "f1", kind: "send", chainId: "chain-1", open: true, turnsMax: 5, createdAt: 1 },
        ...{ requesterKey: "agent:ops:main", requesterSessionId: "s2", targetKey: "agent:main:main" },
        requestText: "look",
      });
      await insertRun(tx, sampleRun({ runId: "r1", flow: { flowId: "f1", step: "reply", turn: 2 } }));
      await endRun(tx, "r1", { end: ended, usage: { ...ZERO_USAGE, totalTokens: 7 }, model: "a/b" });
      await insertRun(tx, sampleRun({ runId: "r2", laneSeq: 2, input: { text: "later" } }));
      await insertRun(
        tx,
        sampleRun({ runId: "r3", laneSeq: 3, input: { text: "big", context: "x".repeat(70_000) } }),
      );
      await insertRun(tx, sampleRun({ runId: "r4", laneSeq: 4, input: { text: "x".repeat(2 ** 20) } }));
    });
    const [told, ...more] = await factsOfRuns(db(), ["r1", "nothing", "' or 1=1 --"]);
    expect(more).toEqual([]);
    expect(told).toEqual({
      ...{ runId: "r1", kind: "turn", ...ended, acceptedAt: sampleRun().acceptedAt, chainId: "chain-1" },
      ...{ model: "a/b", usage: { ...ZERO_USAGE, totalTokens: 7 } },
      flow: { flowId: "f1", step: "reply", turn: 2, turnsMax: 5 },
      receipt: "failed",
    });
    expect(await factsOfRuns(db(), [])).toEqual([]);
    const lane = await factsOfLane(db(), "agent:main:main");
    expect(lane.map(({ runId, input }) => [runId, input?.text])).toEqual([
      ["r2", "later"],
      ["r3", "big"],
      ["r4", undefined],
    ]);
  });

  test("`before`, `after` and `from` must each name a message of that transcript", async () => {
    await append([userMessage("m1", "here")]);
    await append([userMessage("m2", "elsewhere")], { sessionId: "session-2" });
    for (const id of ["m2", "nothing", "' or 1=1 --"]) {
      for (const place of [{ before: id }, { after: id }, { from: id }]) {
        const wanted = { sessionId: "session-1", limit: 5, includeTools: true, ...place };
        const page = await transcripts.readHistory(db(), wanted);
        expect(page).toMatchObject({ ok: false, code: "message_not_found" });
      }
    }
  });

  test("a page of huge messages ends early and says that more messages follow", async () => {
    const huge = "x".repeat(6 * 1024 * 1024);
    await append([1, 2, 3, 4].map((n) => userMessage(`m${n}`, huge)));
    const page = await history({ limit: 4 });
    expect(ids(page.messages)).toEqual(["m3", "m4"]);
    expect(page.nextBefore).toBe("m3");
    const on = await history({ limit: 4, from: "m1" });
    expect([ids(on.messages), on.nextAfter]).toEqual([["m1", "m2"], "m2"]);
  });

  test("the model's context begins at the last compaction, but history contains everything", async () => {
    const compaction = (id: string, firstKeptId: string): Entry => {
      return { id, type: "compaction", summary: `summary ${id}`, firstKeptId, timestamp: 1 };
    };
    const context = async () => ids(await transcripts.readContext(db(), "session-1"));
    await append([userMessage("m1", "a"), assistantMessage("m2", "b"), userMessage("m3", "c")]);
    expect(await context()).toEqual(["m1", "m2", "m3"]);
    await append([compaction("c1", "m2"), userMessage("m4", "d")]);
    expect(await context()).toEqual(["c1", "m2", "m3", "m4"]);
    await append([compaction("c2", "m4"), userMessage("m5", "e")]);
    expect(await context()).toEqual(["c2", "m4", "m5"]);
    await append([compaction("c3", "gone"), userMessage("m6", "f")]);
    expect(await context()).toEqual(["c3", "m6"]);
    expect([...(await transcripts.compactionsOf(db(), sampleSession())).keys()]).toEqual([
      "gone",
      "m4",
      "m2",
    ]);
    expect(ids((await history()).messages)).toEqual(["m1", "m2", "m3", "m4", "m5", "m6"]);
  });

  test("the messages of one run are read in order, and the first text that a person wrote is the title of a transcript", async () => {
    await append([assistantMessage("m0", "greeting")]);
    await append([userMessage("m1", "do it"), assistantMessage("m2", "done")], { runId: "r1" });
    await append([userMessage("m3", "more")], { runId: "r2" });
    expect(ids(await transcripts.readRun(db(), "r1"))).toEqual(["m1", "m2"]);
    expect(await transcripts.readRun(db(), "r9")).toEqual([]);
    await append([userMessage("m4", "read it")], { sessionId: "session-2" });
    const texts = await firstUserTexts(db(), ["session-9", "session-2", "session-1"]);
    expect(Object.fromEntries(texts)).toEqual({ "session-1": "do it", "session-2": "read it" });
    const picture = { type: "image", data: "A".repeat(1_000_000), mimeType: "image/png" } as const;
    const { content, ...rest } = userMessage("m5", 'say "this"\n\u0001');
    const entry = { ...rest, content: [...content, picture] };
    await append([entry, userMessage("m6", "no")], { sessionId: "session-3" });
    await append([userMessage("m7", `${"\\".repeat(20_000)}`)], { sessionId: "session-4" });
    const long = await firstUserTexts(db(), ["session-3", "session-4"]);
    expect(long.get("session-3")).toBe('say "this"\n\u0001');
    expect(long.get("session-4")).toMatch(/^\\{8000,}$/);
    expect(await firstUserTexts(db(), [])).toEqual(new Map());
    const last = await transcripts.lastMessages(db(), "session-1", 2, { includeTools: false });
    expect(ids(last)).toEqual(["m2", "m3"]);
  });
}
