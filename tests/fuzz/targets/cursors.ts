// Cursors and idempotency keys: values that clients send to the gateway, which may be forged.

import fc from "fast-check";
import { damagedText, damagedTree } from "../mutate.ts";
import { nastyText } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";
import { type Asker, asker, fillHouse, MAIN_TOKEN, openFuzzedHouse, READER_TOKEN } from "../wire.ts";

const KEYS = Array.from(
  { length: 24 },
  (_, index) => `agent:${index % 2 === 0 ? "main" : "research"}:telegram:group:${index}`,
);
/**
 * Maximum number of pages to read. There are fewer rows than this, so more pages mean that the cursors form a
 * cycle.
 */
const PAGES_MAX = 200;

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value) ?? "").toString("base64url");
const cursor = fc.oneof(
  {
    weight: 4,
    arbitrary: damagedTree(fc.constantFrom(...KEYS.map((key, index) => [1_000 + index, key]))).map(encoded),
  },
  { weight: 2, arbitrary: damagedText(fc.constantFrom(...KEYS).map((key) => encoded([1_005, key]))) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "0",
      "1",
      "-1",
      "7",
      "999999999999999",
      "9999999999999999",
      "1e3",
      "0x1",
      " 5",
      "5\n",
      "٣",
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ...KEYS.map((_, index) => `m-${index}-2`),
      ...KEYS.map((_, index) => `d-${index}`),
    ),
  },
  { weight: 2, arbitrary: nastyText(3_000) },
);

const METHODS = [
  "sessions.list",
  "deliveries.list",
  "chat.history",
  "sessions_list",
  "sessions_search",
  "sessions_history",
] as const;

interface CursorInput {
  readonly method: (typeof METHODS)[number];
  readonly cursor: string;
  readonly limit: number;
  readonly search: boolean;
}

function paramsOf({ method, limit, search }: CursorInput, at: string): { method: string; params: object } {
  const filter = search ? { search: "telegram" } : {};
  switch (method) {
    case "sessions.list":
      return { method, params: { limit, cursor: at, ...filter } };
    case "deliveries.list":
      return { method, params: { limit, cursor: at } };
    case "chat.history":
      return { method, params: { sessionKey: KEYS[0], limit, before: at } };
    case "sessions_list":
      return { method: "tools.invoke", params: { name: method, args: { limit, cursor: at, ...filter } } };
    case "sessions_search":
      return {
        method: "tools.invoke",
        params: { name: method, args: { query: "alpha", limit, cursor: at } },
      };
    case "sessions_history":
      return {
        method: "tools.invoke",
        params: { name: method, args: { sessionKey: KEYS[0], limit, before: at } },
      };
  }
}

/** Returns the session keys of the rows in an answer. */
function keysIn(payload: Record<string, unknown>): string[] {
  const rows = (payload.sessions ?? payload.deliveries ?? payload.hits ?? []) as {
    key?: string;
    sessionKey?: string;
  }[];
  const messages = (payload.messages ?? []) as { content: { text: string }[] }[];
  return [
    ...rows.map((row) => row.key ?? row.sessionKey ?? ""),
    ...messages.map(({ content }) => content[0]?.text.split(" of ")[1] ?? ""),
  ];
}

const REFUSED = ["invalid_argument", "message_not_found"];

/** Reads all pages from a cursor on. The caller must be allowed to see all rows. */
async function readOn(client: Asker, input: CursorInput): Promise<void> {
  let at: string | undefined = input.cursor;
  const seen = new Set<string>();
  for (let page = 0; at !== undefined; page += 1) {
    must(page < PAGES_MAX, `paging from ${shown(input.cursor)} goes in a circle`);
    const { method, params } = paramsOf(input, at);
    const answer = await client.ask(method, params);
    const payload = (answer.payload ?? {}) as Record<string, unknown>;
    const code = answer.error?.details?.code ?? payload.code;
    if (code !== undefined) {
      must(page === 0 && REFUSED.includes(String(code)), `page ${page} is answered with ${shown(answer)}`);
      return;
    }
    const keys = keysIn(payload);
    must(keys.length <= input.limit, `${keys.length} rows instead of ${input.limit}`);
    for (const key of keys)
      must(key === "main" || key.startsWith("agent:main:"), `${key} is seen through ${shown(at)}`);
    const isList =
      input.method !== "chat.history" &&
      input.method !== "sessions_history" &&
      input.method !== "sessions_search";
    for (const key of isList ? keys : []) must(!seen.has(key), `${key} is listed twice`);
    for (const key of keys) seen.add(key);
    at = (payload.nextCursor ?? payload.nextBefore) as string | undefined;
  }
}

export const cursors: FuzzTarget<CursorInput> = {
  name: "cursors",
  proves:
    "a made-up cursor is refused or finds nothing; none shows what its caller may not see, or goes in a circle",
  inputs: fc.record({
    method: fc.constantFrom(...METHODS),
    cursor,
    limit: fc.integer({ min: 1, max: 5 }),
    search: fc.boolean(),
  }),
  roundRuns: 500,
  ciRuns: 1_000,
  async open() {
    const house = await openFuzzedHouse();
    await fillHouse(house, KEYS);
    const client = await asker(house, MAIN_TOKEN);
    return { check: (input) => readOn(client, input), close: house.close };
  },
};

interface KeyInput {
  readonly one: string;
  readonly other: string;
  readonly label: string;
}

const idempotencyKey = fc.oneof(
  {
    weight: 3,
    arbitrary: damagedText(
      fc.constantFrom("key-1", "KEY-1", "é", "e\u0301", "operator:1", "a".repeat(200)),
      1,
    ),
  },
  { weight: 2, arbitrary: nastyText(260) },
);

export const idempotencyKeys: FuzzTarget<KeyInput> = {
  name: "idempotency-keys",
  proves:
    "a key gives one answer, to its own token and for its own request; a similar key gives another answer",
  inputs: fc.record({ one: idempotencyKey, other: idempotencyKey, label: fc.constantFrom("a", "b") }),
  roundRuns: 300,
  ciRuns: 600,
  async open() {
    const house = await openFuzzedHouse();
    const mine = await asker(house, MAIN_TOKEN);
    const reader = await asker(house, READER_TOKEN);
    // Answers so far, by idempotency key.
    const known = new Map<string, { label: string; answer: string }>();
    const create = async (idempotencyKey: string, label: string) => {
      const answer = await mine.ask("sessions.create", { idempotencyKey, label });
      const before = known.get(idempotencyKey);
      const fits = /^[^\p{Cc}\p{Cs}]{1,200}$/u.test(idempotencyKey) && idempotencyKey.length <= 200;
      must(answer.ok === true || !fits || before?.label !== undefined, `refused: ${shown(answer)}`);
      if (!fits)
        must(answer.error?.code === "INVALID_REQUEST", `${shown(idempotencyKey)} is taken: ${shown(answer)}`);
      else if (before === undefined) {
        const all = [...known.values()].map((one) => one.answer);
        must(
          !all.includes(JSON.stringify(answer.payload)),
          `${shown(idempotencyKey)} gets the answer of another key`,
        );
        known.set(idempotencyKey, { label, answer: JSON.stringify(answer.payload) });
      } else if (before.label === label) {
        must(JSON.stringify(answer.payload) === before.answer, `${shown(idempotencyKey)} gets two answers`);
      } else
        must(
          answer.error?.code === "CONFLICT",
          `${shown(idempotencyKey)} is used for two requests: ${shown(answer)}`,
        );
    };
    return {
      async check({ one, other, label }) {
        await create(one, "a");
        await create(other, label);
        const stolen = await reader.ask("sessions.create", { idempotencyKey: one, label: "a" });
        must(stolen.error?.code === "FORBIDDEN", `a reader is answered with ${shown(stolen)}`);
        const run = await mine.ask("chat.inject", {
          sessionKey: "agent:main:main",
          message: "m",
          idempotencyKey: one,
        });
        if (known.has(one)) must(run.error?.code === "CONFLICT", `one key for two methods: ${shown(run)}`);
      },
      close: house.close,
    };
  },
};
