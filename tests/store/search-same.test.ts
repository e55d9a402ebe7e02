// Runs the same searches on the same texts in both databases. Both must find the same messages.

import * as fc from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import { insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../src/store/queries/transcripts/append.ts";
import { lexemesOf, vectorsOf } from "../../src/store/queries/transcripts/search-lexemes.ts";
import { searchTranscripts } from "../../src/store/queries/transcripts/transcript-search.ts";
import type { Store } from "../../src/store/sql.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { rounds, both as test } from "../kit/deep.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { openPostgresStore, type PostgresStore } from "../kit/store/postgres.ts";
import { sampleSession, silentLog, temporaryDir, userMessage } from "./samples.ts";

const { dir, remove } = temporaryDir();
let embedded: Store;
let shared: PostgresStore;

beforeAll(async () => {
  embedded = await openSqlite({ dir, durability: "normal", log: silentLog });
  shared = await openPostgresStore();
});
afterAll(async () => {
  await embedded.close();
  await shared.dispose();
  remove();
});

const PIECES = [
  ...["a", "b", "ab", "abc", "Abc", "abcd", "aB", "1", "12", "x1", " ", " ", " ", "\n", "\t"],
  ...["ä", "a\u0308", "É", "é", "ß", "ẞ", "İ", "ı", "ﬁ", "ǅ", "Å", "ø", "ő", "ñ", "ç", "ễ"],
  ...["Σ", "σ", "ς", "ΟΔΟΣ", "ά", "Ώ", "ё", "Ё", "й", "и", "µ", "μ", "ſ"],
  ...["の", "は", "が", "か\u3099", "東", "京", "カ", "ー", "㐀", "𠀀", "々"],
  ...["한국", "한", "국어", "ไทย", "שלום", "ש\u05c1", "محمد", "مُحَمَّد", "हि", "न्दी", "हिन्दी", "தமிழ்"],
  ...["-", "_", "'", '"', "\\", "/", ".", ",", ":", "*", "(", ")", "&", "|", "!", "<->", "^", "@", "#"],
  ...["👍", "\u200d", "\u00a0", "\ufeff", "½", "²", "①", "٣", "\ue000", "AND", "OR", "NOT", "NEAR"],
];
const text = fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 12 }).map((all) => all.join(""));

test("X2: both databases find the same messages for any search text", async () => {
  let sessions = 0;
  const found = async (store: Store, sessionKey: string, query: string) =>
    (
      await searchTranscripts(store.db, {
        query,
        scope: { all: true },
        redactor: plainRedactor,
        sessionKey,
        limit: 50,
      })
    ).hits.map((hit) => hit.messageId);
  await fc.assert(
    fc.asyncProperty(
      fc.array(text, { minLength: 1, maxLength: 6 }),
      fc.array(text, { minLength: 1, maxLength: 6 }),
      async (texts, questions) => {
        sessions += 1;
        const sessionKey = `k${sessions}`;
        for (const store of [embedded, shared.store]) {
          await store.transaction(async (tx) => {
            await insertSession(tx, sampleSession({ key: sessionKey, sessionId: sessionKey }));
            for (const [n, one] of texts.entries()) {
              const entry = userMessage(`${sessionKey}-${n}`, one);
              await appendEntry(tx, { sessionKey, sessionId: sessionKey, entry }, plainRedactor);
            }
          });
        }
        for (const query of [...questions, ...texts]) {
          expect({ query, found: await found(shared.store, sessionKey, query) }).toEqual({
            query,
            found: await found(embedded, sessionKey, query),
          });
        }
      },
    ),
    { numRuns: rounds(15, 60) },
  );
});

test("SL1: no text is interpreted as syntax of the index, and no word as a position marker", () => {
  for (const hostile of ["it's", "a\\b", "'x':1", "/s0123", "a:1,2 b", "<-> & | !"]) {
    const words = lexemesOf(hostile);
    expect(words.join("")).toMatch(/^[a-z0-9]*$/);
    const ends = vectorsOf(hostile, ["s1"]).map((vector) => vector.slice(vector.lastIndexOf(" ")));
    expect(ends).toEqual(words.length > 0 ? [" '/s1'"] : []);
  }
});

test("SL2: each part of a text is below the limits of a tsvector, and neighbouring parts overlap", () => {
  const long = vectorsOf(Array.from({ length: 40_000 }, (_, n) => `w${n}`).join(" "), ["s1"]);
  expect(long.length).toBe(3);
  for (const vector of long) expect(vector.endsWith(" '/s1' '/p'")).toBe(true);
  expect(long[0]).toContain("'w15999':16000 ");
  expect(long[1]).toMatch(/^'w15937':1 /);
  const same = vectorsOf("哈".repeat(1_000), []);
  expect(same[0]).toMatch(/,255 '\/p'$/);
  const wide = vectorsOf(Array.from({ length: 3_000 }, (_, n) => `${n}${"é".repeat(490)}`).join(" "), []);
  for (const vector of wide) expect(Buffer.byteLength(vector)).toBeLessThan(2 ** 20);
  expect(wide.length).toBeGreaterThan(1);
});
