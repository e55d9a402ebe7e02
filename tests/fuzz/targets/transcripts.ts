// Rows of transcripts that a disk or a manual change of the database has damaged.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc, { type Arbitrary } from "fast-check";
import { sql } from "kysely";
import type { ModelPort } from "../../../src/agent/model/model.ts";
import { getSession, insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { indexEmbedded } from "../../../src/store/queries/transcripts/append.ts";
import { type JsonlCopies, openJsonlCopies } from "../../../src/store/sqlite/jsonl-copies.ts";
import { assistantMessage, sessionRow, toolResult, userMessage } from "../../core/rows.ts";
import { type Frame, TOKEN } from "../../gateway/kit.ts";
import { type ScriptedAnswer, scriptedModel } from "../../kit/scripted-model.ts";
import { silentLog } from "../../store/samples.ts";
import { damagedText, damagedTree } from "../mutate.ts";
import { nastyText, nastyValue } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";
import { type Asker, asker, type FuzzedHouse, openFuzzedHouse } from "../wire.ts";
import { untilIdle } from "../witness.ts";

/** A row of a transcript: the role column and the content. `~` in the content stands for the row's id. */
interface Row {
  readonly role: string;
  readonly json: string;
}

interface TranscriptInput {
  /** Messages of earlier runs. */
  readonly before: readonly Row[];
  /** Readable messages of the current run. */
  readonly own: readonly Row[];
  readonly who: "chat" | "child";
  readonly ending: "text" | "tools" | "error" | "overflow" | "reset";
}

const USAGE = {
  input: 1,
  output: 1,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 2,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};
const VALID = [
  userMessage("~", "alpha asks"),
  userMessage("~", "alpha from another", {
    provenance: {
      kind: "inter_session",
      sourceSessionKey: "agent:main:main",
      sourceTool: "sessions_send",
      chainId: "c",
      hop: 1,
    },
  }),
  userMessage("~", "alpha noted", { provenance: { kind: "notice" }, senderName: "Ann" }),
  assistantMessage("~", [{ type: "text", text: "alpha answers" }], { usage: USAGE }),
  assistantMessage(
    "~",
    [
      { type: "thinking", thinking: "alpha", thinkingSignature: "s" },
      { type: "toolCall", id: "c1", name: "sessions_list", arguments: { limit: 2 } },
      { type: "toolCall", id: "c2", name: "write", arguments: { path: "x", content: "y" } },
    ],
    { usage: USAGE, stopReason: "toolUse" },
  ),
  toolResult("~", "alpha result", { details: { a: [1] } }),
  toolResult("~", "alpha", { toolCallId: "c2", toolName: "write", isError: true }),
  { id: "~", type: "compaction", summary: "alpha in short", firstKeptId: "row-1-1", timestamp: 1 },
  { id: "~", type: "compaction", summary: "alpha", firstKeptId: "nowhere", timestamp: 1 },
];
const NAMES = [
  ...new Set(
    VALID.flatMap((one) => [
      ...Object.keys(one),
      ...Object.keys(USAGE),
      "type",
      "text",
      "arguments",
      "name",
      "data",
      "mimeType",
    ]),
  ),
];
const roleOf = (entry: (typeof VALID)[number]): string => ("role" in entry ? entry.role : "compaction");

const entry = fc.constantFrom(...VALID);
const row: Arbitrary<Row> = fc.oneof(
  { weight: 3, arbitrary: entry.map((one) => ({ role: roleOf(one), json: JSON.stringify(one) })) },
  {
    weight: 6,
    arbitrary: entry.chain((one) =>
      damagedTree(fc.constant(one), NAMES, 2).map((tree) => ({
        role: roleOf(one),
        json: JSON.stringify(tree) ?? "",
      })),
    ),
  },
  {
    weight: 2,
    arbitrary: entry.chain((one) =>
      damagedText(fc.constant(JSON.stringify(one)), 2).map((json) => ({ role: roleOf(one), json })),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      role: fc.constantFrom("user", "assistant", "toolResult", "compaction", "weird", ""),
      json: fc.oneof(
        entry.map((one) => JSON.stringify(one)),
        nastyValue().map((value) => JSON.stringify(value)),
        nastyText(100_000),
      ),
    }),
  },
  // JSON that is nested deeper than any stack.
  {
    weight: 1,
    arbitrary: fc
      .tuple(entry, fc.nat(20_000))
      .map(([one, depth]) => ({ role: roleOf(one), json: deepened(one, depth) })),
  },
);

function deepened(one: (typeof VALID)[number], depth: number): string {
  const inside = JSON.stringify({ ...one, details: "@", arguments: "@" });
  return inside.replaceAll('"@"', () => "[".repeat(depth) + "]".repeat(depth));
}

/** Writes rows into a transcript without validation, and into the search index. */
async function putRows(
  house: FuzzedHouse,
  key: string,
  sessionId: string,
  rows: readonly Row[],
  runId: string | null,
): Promise<void> {
  await house.store.transaction(async (tx) => {
    for (const { role, json } of rows) {
      const { rows: last } = await sql<{
        n: number;
      }>`select count(*) as n from messages where session_id = ${sessionId}`.execute(tx);
      const id = `row-${sessionId}-${last[0]?.n}`;
      const added = await tx
        .insertInto("messages")
        .values({
          id,
          session_id: sessionId,
          session_key: key,
          run_id: runId,
          role,
          entry_json: json.replaceAll('"~"', JSON.stringify(id)),
          created_at: 1,
        })
        .returning("seq")
        .executeTakeFirstOrThrow();
      await indexEmbedded(tx, { seq: added.seq, sessionKey: key, agentId: "main", text: "alpha" });
    }
  });
}

/** Matches internal error messages, which people must not see. */
const UNCLEAR =
  /is not a function|cannot read|undefined|call stack|is not iterable|unexpected (token|end)|in JSON|private member/i;

/** Checks that every method that reads a transcript returns the readable messages. */
async function readAll(client: Asker, key: string, sessionId: string): Promise<void> {
  const tool = (name: string, args: object) =>
    client.ask("tools.invoke", { name, args, sessionKey: "agent:main:main" });
  const answers = [
    await client.ask("chat.history", { sessionKey: key }),
    await client.ask("chat.history", { sessionKey: key, limit: 2, before: `row-${sessionId}-2` }),
    await client.ask("sessions.list", { includeDerivedTitles: true, includeLastMessage: true }),
    await client.ask("sessions.preview", { keys: [key] }),
    await tool("sessions_history", { sessionKey: key, includeTools: true }),
    await tool("sessions_history", { sessionKey: key, limit: 2 }),
    await tool("sessions_search", { query: "alpha", sessionKey: key }),
    await tool("sessions_list", { messageLimit: 3 }),
    await tool("session_status", { sessionKey: key }),
  ];
  for (const answer of answers) {
    const code = answer.error?.details?.code ?? (answer.payload as { code?: unknown } | undefined)?.code;
    must(code === undefined || code === "message_not_found", `a read is answered with ${shown(answer)}`);
  }
  const { messages } = (answers[0] as Frame).payload as {
    messages: { id: unknown; role: unknown; content: unknown }[];
  };
  for (const message of messages) {
    must(typeof message.id === "string" && Array.isArray(message.content), `history holds ${shown(message)}`);
    must(
      ["user", "assistant", "toolResult"].includes(String(message.role)),
      `history holds ${shown(message)}`,
    );
  }
}

/** Returns the model's steps in order. Its first call damages the transcript. */
function script(input: TranscriptInput, damage: () => Promise<void>): Script {
  return async (call) => {
    if (call === 0) {
      await damage();
      if (input.ending === "tools")
        return { text: "looking", toolCalls: [{ name: "sessions_list", arguments: { limit: 1 } }] };
    }
    switch (input.ending) {
      case "error":
        return { error: "the provider said no" };
      case "overflow":
        return call > 3 ? "over" : { overflow: "too long" };
      case "reset":
        return new Promise<never>(() => {});
      default:
        return "done";
    }
  };
}

interface Begun {
  readonly key: string;
  readonly sessionId: string;
  readonly runId: string;
}

/** A gateway with a scripted model, and a client. */
class Stage {
  readonly house: FuzzedHouse;
  readonly client: Asker;
  readonly #jsonlCopies: JsonlCopies;
  readonly #model: Model;
  #count = 0;

  constructor(house: FuzzedHouse, client: Asker, model: Model) {
    this.house = house;
    this.client = client;
    this.#model = model;
    this.#jsonlCopies = openJsonlCopies({ dir: house.dir, log: silentLog, db: house.store.db });
  }

  /** Deletes the session of an input, so that a failed input does not affect the next one. */
  async forget(): Promise<void> {
    await this.house.store.transaction(async (tx) => {
      for (const keys of ["agent:main:chat:%", "agent:main:subagent:%"]) {
        await tx.deleteFrom("messages").where("session_key", "like", keys).execute();
        await tx.deleteFrom("sessions").where("key", "like", keys).execute();
      }
    });
  }

  /** Starts a run in a session with this transcript. */
  async begin(input: TranscriptInput): Promise<Begun> {
    this.#count += 1;
    const begun = Promise.withResolvers<Begun>();
    this.#model.play(
      script(input, async () => {
        const { key, sessionId, runId } = await begun.promise;
        await putRows(this.house, key, sessionId, input.own, runId);
      }),
    );
    const made = await (input.who === "chat" ? this.#chat(input) : this.#child(input));
    begun.resolve(made);
    return made;
  }

  async #chat({ before }: TranscriptInput): Promise<Begun> {
    const made = {
      key: `agent:main:chat:${this.#count}`,
      sessionId: `s-${this.#count}`,
      runId: `run-${this.#count}`,
    };
    const { key, sessionId, runId } = made;
    const row = sessionRow(key, { sessionId, agentId: "main" });
    await this.house.store.transaction((tx) => insertSession(tx, row));
    await putRows(this.house, key, sessionId, before, null);
    await readAll(this.client, key, sessionId);
    const params = { sessionKey: key, message: "alpha?", idempotencyKey: runId };
    const sent = await this.client.ask("chat.send", params);
    must(sent.ok === true, `not accepted: ${shown(sent)}`);
    return made;
  }

  async #child({ before }: TranscriptInput): Promise<Begun> {
    const call = { name: "sessions_spawn", args: { task: "alpha" }, sessionKey: "main" };
    const { childSessionKey: key, runId } = (await this.client.ask("tools.invoke", call)).payload;
    const { sessionId = "" } = (await getSession(this.house.store.db, key)) ?? {};
    await putRows(this.house, key, sessionId, before, runId);
    return { key, sessionId, runId };
  }

  /** Checks that the run ends with a reason. */
  async checkEnd({ runId }: Begun): Promise<void> {
    const { engine, store } = this.house;
    const run = await engine.waitForRun(runId, engine.now() + 50_000);
    must(run?.endedAt !== undefined, `the run is ${run?.state}`);
    must(run.state === "ok" || (run.error ?? "") !== "", `the run ended ${run.state} without a word`);
    must(!UNCLEAR.test(run.error ?? ""), `the run ended ${run.state}: ${run.error}`);
    await untilIdle(store);
  }

  /** Checks that the JSONL copy is written from the remaining rows. */
  async checkCopy({ sessionId }: Begun): Promise<void> {
    this.#jsonlCopies.note(sessionId);
    await this.#jsonlCopies.flush();
    const file = join(this.house.dir, `${sessionId}.jsonl`);
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    must(text.startsWith('{"type":"session"'), "there is no copy of the transcript");
  }

  /** Checks that an operator can still use the session. */
  async checkHold({ key }: Begun): Promise<void> {
    const next = { sessionKey: key, message: "again", idempotencyKey: `again-${this.#count}`, timeout: 1 };
    const asked: [string, object][] = [
      ["agent", next],
      ["sessions.reset", { key }],
      ["sessions.delete", { key }],
    ];
    for (const [method, params] of asked) {
      const answer = await this.client.ask(method, params);
      must(answer.ok === true, `${method}: ${shown(answer)}`);
    }
    await untilIdle(this.house.store);
  }

  async close(): Promise<void> {
    await this.#jsonlCopies.flush();
    await this.house.close();
  }
}

type Script = (call: number) => Promise<ScriptedAnswer>;

/** A model that restarts its script for every input. */
interface Model {
  readonly port: ModelPort;
  play(script: Script): void;
}

function createModel(): Model {
  let answer: Script = async () => "nothing";
  let calls = 0;
  const port = scriptedModel(() => {
    calls += 1;
    return answer(calls - 1);
  });
  return {
    port,
    play(next) {
      answer = next;
      calls = 0;
      port.requests.length = 0;
    },
  };
}

export const transcripts: FuzzTarget<TranscriptInput> = {
  name: "transcripts",
  proves: "a damaged transcript is read as far as it can be; its runs end; it can be reset and deleted",
  inputs: fc.record({
    before: fc.array(row, { maxLength: 6 }),
    own: fc.array(row, { maxLength: 3 }),
    who: fc.constantFrom("chat" as const, "child" as const),
    ending: fc.constantFrom(
      "text" as const,
      "tools" as const,
      "error" as const,
      "overflow" as const,
      "reset" as const,
    ),
  }),
  roundRuns: 100,
  ciRuns: 50,
  async open() {
    const model = createModel();
    const house = await openFuzzedHouse({ model: model.port });
    const stage = new Stage(house, await asker(house, TOKEN), model);
    return {
      async check(input) {
        await stage.forget();
        const begun = await stage.begin(input);
        if (input.ending === "reset") {
          const reset = await stage.client.ask("sessions.reset", { key: begun.key });
          must(reset.ok === true, `not reset: ${shown(reset)}`);
        }
        await stage.checkEnd(begun);
        await readAll(stage.client, begun.key, begun.sessionId);
        await stage.checkCopy(begun);
        await stage.checkHold(begun);
      },
      close: () => stage.close(),
    };
  },
};
