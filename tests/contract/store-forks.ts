// Forks: transcripts that share the beginning of another one, compared with a model that copies it.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { forkKey } from "../../src/core/fork-key.ts";
import { decideAccess, scopeOf, type Viewer } from "../../src/core/rules/visibility.ts";
import { type Entry, isCompaction, type Message, textOf } from "../../src/core/shapes/message.ts";
import { insertRun } from "../../src/store/queries/runs/runs.ts";
import { filterCounts } from "../../src/store/queries/sessions/counts.ts";
import {
  earlierConversations,
  hadTranscript,
} from "../../src/store/queries/sessions/earlier-conversations.ts";
import {
  deleteSessionRows,
  insertSession,
  replaceSessionId,
  wasDeleted,
} from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../src/store/queries/transcripts/append.ts";
import { firstUserTexts } from "../../src/store/queries/transcripts/first-texts.ts";
import { forkMarkerId, forkPointAt, linkFork } from "../../src/store/queries/transcripts/forks.ts";
import { searchTranscripts } from "../../src/store/queries/transcripts/transcript-search.ts";
import * as transcripts from "../../src/store/queries/transcripts/transcripts.ts";
import type { Store } from "../../src/store/sql.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { assistantMessage, sampleRun, sampleSession, toolResult, userMessage } from "../store/samples.ts";

interface SessionName {
  readonly key: string;
  readonly sessionId: string;
}

const at = (name: string): SessionName => ({ key: `agent:main:${name}`, sessionId: `session-${name}` });
const ids = (entries: readonly { id: string }[]): string[] => entries.map(({ id }) => id);

function actsOn(store: () => Store) {
  const append = (place: SessionName, entries: readonly Entry[]) =>
    store().transaction(async (tx) => {
      const where = { sessionKey: place.key, sessionId: place.sessionId };
      for (const entry of entries) await appendEntry(tx, { ...where, entry }, plainRedactor);
    });
  const open = (place: SessionName) =>
    store().transaction((tx) => insertSession(tx, sampleSession({ ...place, kind: "other" })));
  /** Forks `origin` into `fork`, and returns the marker. */
  const fork = async (origin: SessionName, into: SessionName, messageId: string): Promise<Message> => {
    const marker = userMessage(forkMarkerId(into.sessionId), "forked");
    await store().transaction(async (tx) => {
      const point = await forkPointAt(tx, origin, messageId);
      if (typeof point === "string") throw new Error(`${messageId}: ${point}`);
      await insertSession(tx, sampleSession({ ...into, kind: "other" }));
      await linkFork(tx, into.sessionId, { from: point.sessionId, at: point.messageId });
    });
    await append(into, [marker]);
    return marker;
  };
  const remove = (key: string) =>
    store().transaction((tx) => deleteSessionRows(tx, key, { transcripts: true }));
  const read = async (sessionId: string, more: Partial<transcripts.HistoryWanted> = {}) => {
    const page = await transcripts.readHistory(store().db, {
      sessionId,
      limit: 50,
      includeTools: true,
      ...more,
    });
    if (!page.ok) throw new Error(page.error);
    return page.value;
  };
  const context = async (sessionId: string) => ids(await transcripts.readContext(store().db, sessionId));
  const stored = async () =>
    ids(await store().db.selectFrom("messages").select("id").orderBy("seq").execute());
  return { append, open, fork, remove, read, context, stored };
}

/** Returns the context that a transcript with all these entries has. */
function contextOf(entries: readonly Entry[]): string[] {
  const last = entries.findLast(isCompaction);
  const messages = ids(entries.filter((entry) => !isCompaction(entry)));
  return last === undefined ? messages : [last.id, ...messages.slice(messages.indexOf(last.firstKeptId))];
}

/** Reads all pages in both directions, which must show exactly these entries. */
async function checkPages(
  read: ReturnType<typeof actsOn>["read"],
  sessionId: string,
  entries: readonly Entry[],
): Promise<void> {
  for (const includeTools of [true, false]) {
    const wanted = entries.filter((one) => !isCompaction(one) && (includeTools || one.role !== "toolResult"));
    const back: string[] = [];
    for (let before: string | undefined = ""; before !== undefined; ) {
      const page = await read(sessionId, { limit: 3, includeTools, ...(before === "" ? {} : { before }) });
      back.unshift(...ids(page.messages));
      before = page.nextBefore;
    }
    expect(back).toEqual(ids(wanted));
    const [first] = wanted;
    if (first === undefined) continue;
    let page = await read(sessionId, { limit: 3, includeTools, from: first.id });
    expect(page.nextBefore).toBeUndefined();
    const onward = ids(page.messages);
    while (page.nextAfter !== undefined) {
      page = await read(sessionId, { limit: 3, includeTools, after: page.nextAfter });
      expect(page.nextBefore).toBe(page.messages[0]?.id);
      onward.push(...ids(page.messages));
    }
    expect(onward).toEqual(ids(wanted));
  }
}

interface Step {
  readonly act: "say" | "fork" | "reset" | "delete" | "compact" | "open";
  readonly whom: number;
  readonly where: number;
}
const STEP: fc.Arbitrary<Step> = fc.record({
  act: fc.constantFrom<Step["act"][]>(
    "say",
    "say",
    "say",
    "fork",
    "fork",
    "reset",
    "delete",
    "compact",
    "open",
  ),
  whom: fc.nat(),
  where: fc.nat(),
});

/** A model of the store in which each fork has a copy of the shared entries. */
class Copies {
  readonly entries = new Map<string, Entry[]>();
  readonly current = new Map<string, string>();
  readonly #keys = new Map<string, string>();
  #made = 0;

  next(): number {
    this.#made += 1;
    return this.#made;
  }

  begin({ key, sessionId }: SessionName, entries: readonly Entry[]): void {
    this.entries.set(sessionId, [...entries]);
    this.current.set(key, sessionId);
    this.#keys.set(sessionId, key);
  }

  delete(key: string): void {
    this.current.delete(key);
    for (const [sessionId, owner] of this.#keys) {
      if (owner !== key) continue;
      this.#keys.delete(sessionId);
      this.entries.delete(sessionId);
    }
  }
}

/** Compares the store with the model: each transcript, and the set of stored messages. */
async function check(store: Store, acts: ReturnType<typeof actsOn>, model: Copies) {
  const titles = await firstUserTexts(store.db, [...model.entries.keys()]);
  const shown = new Set([...model.entries.values()].flatMap(ids));
  expect(new Set(await acts.stored())).toEqual(shown);
  for (const [sessionId, entries] of model.entries) {
    expect(await acts.context(sessionId)).toEqual(contextOf(entries));
    await checkPages(acts.read, sessionId, entries);
    const messages = entries.filter((entry): entry is Message => !isCompaction(entry));
    const first = messages.find((message) => message.role === "user");
    expect(titles.get(sessionId)).toBe(first && textOf(first));
    const last = await transcripts.lastMessages(store.db, sessionId, 4, { includeTools: true });
    expect(ids(last)).toEqual(ids(messages.slice(-4)));
  }
}

/** Returns a function that takes a step in the store and in the model. */
function stepper(store: Store, acts: ReturnType<typeof actsOn>, model: Copies) {
  const begin = async (): Promise<void> => {
    const place = at(`named-${model.next()}`);
    await acts.open(place);
    model.begin(place, []);
  };
  return async ({ act, whom, where }: Step) => {
    const places = [...model.current];
    const [key, sessionId] = places[whom % Math.max(1, places.length)] ?? [];
    if (key === undefined || sessionId === undefined || act === "open") return begin();
    const entries = model.entries.get(sessionId) ?? [];
    const messages = entries.filter((entry): entry is Message => !isCompaction(entry));
    const chosen = messages[where % Math.max(1, messages.length)];
    const n = model.next();
    const write = async (entry: Entry): Promise<void> => {
      await acts.append({ key, sessionId }, [entry]);
      entries.push(entry);
    };
    if (act === "say") {
      const make = [userMessage, assistantMessage, toolResult][where % 3] ?? userMessage;
      await write(make(`m${n}`, `text ${n}`));
    } else if (act === "compact" && chosen !== undefined) {
      await write({ id: `c${n}`, type: "compaction", summary: "s", firstKeptId: chosen.id, timestamp: 1 });
    } else if (act === "fork" && chosen !== undefined) {
      const into = at(`fork-${n}`);
      const marker = await acts.fork({ key, sessionId }, into, chosen.id);
      model.begin(into, [...entries.slice(0, entries.indexOf(chosen) + 1), marker]);
    } else if (act === "reset") {
      const next = `session-${n}`;
      await store.transaction((tx) => replaceSessionId(tx, key, next, n));
      model.begin({ key, sessionId: next }, []);
    } else if (act === "delete") {
      await acts.remove(key);
      model.delete(key);
    }
  };
}

export function forkContract(store: () => Store): void {
  const acts = actsOn(store);

  test("a fork reads like a copy of its origin, whatever is written, forked, reset and deleted", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 8, maxLength: 30 }), async (steps) => {
        // A failed round leaves rows behind.
        for (const table of ["sessions", "session_ids", "messages"] as const) {
          await store().transaction((tx) => tx.deleteFrom(table).execute());
        }
        const model = new Copies();
        const take = stepper(store(), acts, model);
        for (const step of steps) {
          await take(step);
          if (step.act === "delete") await check(store(), acts, model);
        }
        await check(store(), acts, model);
        for (const key of model.current.keys()) await acts.remove(key);
        expect(await acts.stored()).toEqual([]);
        expect(await store().db.selectFrom("session_ids").selectAll().execute()).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  exampleContract(acts, store);
  heirContract(acts, store);
  rightsContract(store);
}

/** Forks with known messages. */
function exampleContract(acts: ReturnType<typeof actsOn>, store: () => Store): void {
  test("a fork never parts a tool call from its result: it has all results of a message, or not the message", async () => {
    const { append, open } = acts;
    const origin = at("origin");
    await open(origin);
    const call = (id: string) => ({ type: "toolCall" as const, id, name: "read", arguments: {} });
    const asks = { ...assistantMessage("m2", ""), content: [call("a"), call("b")] };
    const result = (id: string, callId: string) => ({ ...toolResult(id, "out"), toolCallId: callId });
    const point = async (id: string) => {
      const found = await forkPointAt(store().db, origin, id);
      return typeof found === "string" ? found : found.messageId;
    };
    await append(origin, [userMessage("m1", "go"), asks, result("m2:0", "a")]);
    expect([await point("m1"), await point("m2"), await point("m2:0")]).toEqual(["m1", "m1", "m1"]);
    await append(origin, [result("m2:1", "b"), assistantMessage("m3", "done"), userMessage("m4", "more")]);
    expect([await point("m2"), await point("m2:0"), await point("m2:1")]).toEqual(["m2:1", "m2:1", "m2:1"]);
    expect([await point("m3"), await point("m4"), await point("gone")]).toEqual(["m3", "m4", "missing"]);
    const bare = at("bare");
    await open(bare);
    await append(bare, [{ ...asks, id: "b1" }]);
    expect(await forkPointAt(store().db, bare, "b1")).toBe("nothing");
    expect(await forkPointAt(store().db, bare, "m1")).toBe("missing");
  });

  test("a deleted session's messages that a fork shares stay in the fork, and only these stay", async () => {
    const { append, open, fork, remove, read, stored } = acts;
    const [origin, one, two] = [at("origin"), at("one"), at("two")];
    await open(origin);
    await append(origin, [
      userMessage("m1", "marmalade"),
      assistantMessage("m2", "b"),
      userMessage("m3", "c"),
    ]);
    await fork(origin, one, "m1");
    await fork(origin, two, "m2");
    expect(await remove(origin.key)).toEqual([origin.sessionId]);
    const [markOne, markTwo] = [forkMarkerId(one.sessionId), forkMarkerId(two.sessionId)];
    expect(await stored()).toEqual(["m1", "m2", markOne, markTwo]);
    expect(ids((await read(two.sessionId)).messages)).toEqual(["m1", "m2", markTwo]);
    const asked = { query: "marmalade", scope: { all: true }, redactor: plainRedactor, limit: 5 } as const;
    const { hits } = await searchTranscripts(store().db, asked);
    expect(hits).toMatchObject([{ sessionKey: one.key, messageId: "m1" }]);
    expect(hits[0]).not.toHaveProperty("earlier");
    expect(await earlierConversations(store().db, one, 5)).toEqual([]);
    // A new session with the same key does not get the messages of the deleted one.
    await open({ key: origin.key, sessionId: "session-new" });
    expect(await earlierConversations(store().db, { key: origin.key, sessionId: "session-new" }, 5)).toEqual(
      [],
    );
    await remove(two.key);
    expect(await stored()).toEqual(["m1", markOne]);
    await remove(one.key);
    expect(await stored()).toEqual([]);
  });
}

/** Forks whose origin is deleted: its transcript belongs to the first fork, which shares only its beginning. */
function heirContract(acts: ReturnType<typeof actsOn>, store: () => Store) {
  const { append, open, fork, remove, read, stored } = acts;
  async function orphans() {
    const origin = at("origin");
    const [one, two] = ["one", "two"].map((name, index) => ({
      key: forkKey(origin.key, `0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b1${index}`),
      sessionId: `session-${name}`,
    })) as [SessionName, SessionName];
    await open(origin);
    const told = ["apricot", "blackberry", "cloudberry", "damson"];
    await append(
      origin,
      told.map((text, index) => userMessage(`m${index + 1}`, text)),
    );
    await fork(origin, one, "m2");
    await fork(origin, two, "m4");
    return { origin, one, two };
  }

  test("the fork that inherits a transcript has only the messages that it shares", async () => {
    const { origin, one, two } = await orphans();
    await remove(origin.key);
    expect(await hadTranscript(store().db, one.key, origin.sessionId)).toBe(false);
    expect(await forkPointAt(store().db, one, "m3")).toBe("missing");
    expect(await forkPointAt(store().db, one, "m2")).toMatchObject({ messageId: "m2" });
    expect(await forkPointAt(store().db, two, "m3")).toMatchObject({ messageId: "m3" });
    const asked = { scope: { all: true }, redactor: plainRedactor, limit: 5 } as const;
    const found = async (query: string) =>
      (await searchTranscripts(store().db, { ...asked, query })).hits.map(({ messageId }) => messageId);
    expect([await found("blackberry"), await found("cloudberry")]).toEqual([["m2"], []]);
  });

  const keep = (key: string) =>
    store().transaction((tx) => deleteSessionRows(tx, key, { transcripts: false }));
  const ownerOf = async ({ sessionId }: SessionName) => {
    const rows = store().db.selectFrom("session_ids").select("session_key");
    return (await rows.where("session_id", "=", sessionId).executeTakeFirst())?.session_key;
  };

  test("a deleted fork whose transcript was kept inherits nothing", async () => {
    const { origin, one, two } = await orphans();
    await keep(two.key);
    await keep(one.key);
    expect(await remove(origin.key)).toEqual([origin.sessionId]);
    expect(await stored()).toEqual([forkMarkerId(one.sessionId), forkMarkerId(two.sessionId)]);
  });

  test("a session inherits before a deleted fork whose transcript was kept, and only what sessions share", async () => {
    const { origin, one, two } = await orphans();
    await keep(one.key);
    await remove(origin.key);
    expect(await ownerOf(origin)).toBe(two.key);
    await remove(two.key);
    expect(await stored()).toEqual([forkMarkerId(one.sessionId)]);
  });

  test("a session keeps what it shares through a deleted fork whose transcript was kept", async () => {
    const { origin, one, two } = await orphans();
    const below = at("below");
    await fork(one, below, forkMarkerId(one.sessionId));
    await keep(one.key);
    await remove(origin.key);
    expect(await ownerOf(origin)).toBe(two.key);
    await remove(two.key);
    const marks = [one, below].map(({ sessionId }) => forkMarkerId(sessionId));
    expect(ids((await read(below.sessionId)).messages)).toEqual(["m1", "m2", ...marks]);
    expect(await stored()).toEqual(["m1", "m2", ...marks]);
  });

  test("a transcript that was deleted with its last fork counts as deleted for every heir", async () => {
    const { origin, one, two } = await orphans();
    const run = { sessionKey: origin.key, sessionId: origin.sessionId };
    await store().transaction((tx) => insertRun(tx, sampleRun(run)));
    for (const { key } of [origin, one, two]) await remove(key);
    for (const { key } of [origin, one, two])
      expect(await wasDeleted(store().db, key, origin.sessionId)).toBe(true);
    expect(await wasDeleted(store().db, "agent:main:other", origin.sessionId)).toBe(false);
  });
}

function rightsContract(store: () => Store): void {
  test("FO1: a query with a token's patterns finds exactly the forks that the token covers", async () => {
    const id = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11";
    const main = "agent:main:main";
    const keys = [main, forkKey(main, id), forkKey(forkKey(main, id), id), "agent:main:a:fork:b"];
    await store().transaction(async (tx) => {
      for (const key of keys) await insertSession(tx, sampleSession({ key, sessionId: key, failedRun: "r" }));
    });
    const rules = { mode: "tree", agentToAgent: { enabled: false, allow: [] }, scope: "per-sender" } as const;
    for (const pattern of ["*", main, `${main}*`, `${main}:*`, "*:fork:*", keys[1] ?? "", `*${id}`]) {
      const viewer: Viewer = { kind: "operator", scopes: ["operator.read"], patterns: [pattern] };
      const covers = keys.filter((key) => {
        const target = { key, agentId: "main", archived: false, ancestors: [] };
        return decideAccess("list", viewer, target, rules).allowed;
      });
      const { failed } = await filterCounts(store().db, { scope: scopeOf(viewer, rules, []), askedBy: "" });
      expect(failed, pattern).toBe(covers.length);
    }
  });
}
