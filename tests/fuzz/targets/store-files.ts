// Files of a store after a crash, a disk error or a manual change: cut, with changed bits, missing, replaced.

import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc, { type Arbitrary } from "fast-check";
import { type App, openApp } from "../../../src/app.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { realWorld } from "../../../src/world.ts";
import { GROUND } from "../../kit/cleanup.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";
import { type BytesEdit, bytesEdit, editBytes } from "../mutate.ts";
import { type FuzzTarget, must, shown } from "../target.ts";
import { askGateway } from "../wire.ts";

type Damage =
  | { readonly kind: "edit"; readonly edit: BytesEdit }
  | { readonly kind: "gone" | "empty" | "folder" }
  | { readonly kind: "text"; readonly text: string };

interface FilesInput {
  /**
   * State of the files. `closed`: after a planned stop. `open`: after a kill, with committed data in the
   * log.
   */
  readonly left: "closed" | "open";
  readonly damages: readonly { readonly file: string; readonly damage: Damage }[];
}

const DATABASE = "parley.sqlite";
const COPY = "the copy of a transcript";
const FILES = [
  DATABASE,
  DATABASE,
  DATABASE,
  `${DATABASE}-wal`,
  `${DATABASE}-shm`,
  "gateway.lock",
  "gateway.pid",
  "gateway-token",
  "mirror.progress",
  COPY,
];

const damage: Arbitrary<Damage> = fc.oneof(
  { weight: 6, arbitrary: bytesEdit.map((edit) => ({ kind: "edit" as const, edit })) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom("gone" as const, "empty" as const, "folder" as const)
      .map((kind) => ({ kind })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(
        "0",
        "-1",
        "99999999999",
        "1e9",
        "NaN",
        "{}",
        "\u0000",
        "x\ny\n",
        '{"id":7}\n',
        "SQLite format 3\u0000",
      )
      .map((text) => ({ kind: "text" as const, text })),
  },
);

interface Template {
  readonly dir: string;
  readonly keys: readonly string[];
  readonly messages: number;
}

/** Time limit for writing the JSONL copies of a template. */
const COPIES_MAX_MS = 30_000;

const world = realWorld({ level: "silent" });

function settingsIn(base: string, dir: string): Settings {
  const settings = settingsWith({ agents: [agentSettings("main", { workspace: join(base, "workspace") })] });
  return { ...settings, store: { dir, durability: "normal" } };
}

async function openIn(base: string, dir: string) {
  return openApp({ settings: settingsIn(base, dir), world, version: "0", environment: {} });
}

/** Sends a message to a session and waits for the answer. */
async function say(app: App, sessionKey: string, text: string): Promise<void> {
  const accepted = await app.engine.accept({ sessionKey, input: { text } });
  must(accepted.ok, `not accepted: ${shown(accepted)}`);
  const run = await app.engine.waitForRun(accepted.value.run.runId, app.engine.now() + 30_000);
  must(run?.state === "ok", `the run ended ${run?.state}: ${run?.error}`);
}

async function contentOf(app: App): Promise<{ keys: string[]; messages: number }> {
  const sessions = await app.store.db.selectFrom("sessions").select("key").orderBy("key").execute();
  const messages = await app.store.db.selectFrom("messages").select("seq").execute();
  return { keys: sessions.map(({ key }) => key), messages: messages.length };
}

/** Returns the first JSONL copy that differs from the database, or undefined. */
async function copyBehind(app: App, dir: string): Promise<string | undefined> {
  const ids = await app.store.db.selectFrom("session_ids").select("session_id").execute();
  const rows = await app.store.db
    .selectFrom("messages")
    .select(["session_id", "entry_json"])
    .orderBy("seq")
    .execute();
  for (const { session_id: id } of ids) {
    const file = join(dir, `${id}.jsonl`);
    if (!existsSync(file)) return `there is no copy ${id}`;
    const expected = rows.filter((row) => row.session_id === id).map((row) => row.entry_json);
    const [, ...lines] = readFileSync(file, "utf8").split("\n").slice(0, -1);
    if (JSON.stringify(lines) !== JSON.stringify(expected))
      return `the copy ${id} has ${lines.length} of ${expected.length} lines`;
  }
  return undefined;
}

/** Resolves when all JSONL copies are written, so that no file changes before the next message. */
async function copiesWritten(app: App, dir: string): Promise<void> {
  const giveUpAt = world.clock.monotonic() + COPIES_MAX_MS;
  for (let behind = await copyBehind(app, dir); behind !== undefined; behind = await copyBehind(app, dir)) {
    must(world.clock.monotonic() < giveUpAt, behind);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Makes folders of a store with messages: one after a planned stop, one as after a kill. */
async function makeTemplates(base: string): Promise<Record<FilesInput["left"], Template>> {
  const dir = join(base, "made");
  const opened = await openIn(base, dir);
  must(opened.ok, `no store: ${shown(opened)}`);
  const app = opened.value;
  const ask = await askGateway(`ws://127.0.0.1:${app.port}`, app.token);
  for (let count = 0; count < 6; count += 1) {
    const made = await ask.ask("sessions.create", { idempotencyKey: `k${count}`, label: `l${count}` });
    for (const text of ["what is 2 + 3?", "say alpha", "x".repeat(3_000)])
      await say(app, (made.payload as { key: string }).key, text);
  }
  ask.raw.socket.terminate();
  const content = await contentOf(app);
  // JSONL copies are renamed while they are written, so a listed file may disappear before it is copied.
  await copiesWritten(app, dir);
  cpSync(dir, join(base, "open"), { recursive: true });
  await app.close(0);
  cpSync(dir, join(base, "closed"), { recursive: true });
  return { open: { dir: join(base, "open"), ...content }, closed: { dir: join(base, "closed"), ...content } };
}

function damageFile(path: string, how: Damage): void {
  if (how.kind === "edit") {
    if (statSync(path, { throwIfNoEntry: false })?.isFile())
      writeFileSync(path, editBytes(readFileSync(path), how.edit));
    return;
  }
  rmSync(path, { recursive: true, force: true });
  if (how.kind === "empty") writeFileSync(path, "");
  if (how.kind === "folder") mkdirSync(path);
  if (how.kind === "text") writeFileSync(path, how.text);
}

/** Returns a hash of the database and its log, to detect writes. */
function databaseHash(dir: string): string {
  const hash = createHash("sha256");
  for (const name of [DATABASE, `${DATABASE}-wal`]) {
    try {
      hash.update(name).update(readFileSync(join(dir, name)));
    } catch {
      // The file is missing, or is a folder.
    }
  }
  return hash.digest("hex");
}

const CODES_OF_A_STORE = ["store_unavailable", "not_visible", "session_not_found"];

/**
 * Uses a damaged store. Each operation must return data that remains, or fail with one of the store's own
 * errors.
 */
async function useAll(app: App, template: Template, resets: number): Promise<void> {
  const client = await askGateway(`ws://127.0.0.1:${app.port}`, app.token);
  const asked: [string, object][] = [
    ["sessions.list", { includeDerivedTitles: true, includeLastMessage: true, includeArchived: true }],
    ["status", {}],
    ["deliveries.list", {}],
    ["tools.invoke", { name: "sessions_search", args: { query: "alpha" } }],
    ["tools.invoke", { name: "sessions_list", args: { messageLimit: 2, search: "l" } }],
    ...template.keys.map((key): [string, object] => ["chat.history", { sessionKey: key }]),
    ...template.keys.slice(0, resets).map((key): [string, object] => ["sessions.reset", { key }]),
  ];
  for (const [method, params] of asked) {
    const answer = await client.ask(method, params);
    const code = answer.error?.details?.code ?? (answer.payload as { code?: unknown } | undefined)?.code;
    must(
      code === undefined || CODES_OF_A_STORE.includes(String(code)),
      `${method} is answered with ${shown(answer)}`,
    );
  }
  client.raw.socket.terminate();
}

async function checkOpened(app: App, template: Template, input: FilesInput): Promise<void> {
  const touched = new Set(input.damages.map(({ file }) => file));
  const lostLog = input.left === "open" && touched.has(`${DATABASE}-wal`);
  if (touched.has(DATABASE) || lostLog) {
    const content = await contentOf(app).catch(() => undefined);
    if (!lostLog)
      must(content === undefined || content.messages > 0, "a store was emptied, and nobody was told");
    await useAll(app, template, 2);
    return;
  }
  const { keys, messages } = await contentOf(app);
  must(
    JSON.stringify(keys) === JSON.stringify(template.keys) && messages === template.messages,
    `${messages} messages of ${template.messages}`,
  );
  await say(app, "agent:main:main", "what is 1 + 1?");
  // The start does not check the transcripts of earlier conversations.
  await useAll(app, template, 0);
}

export const storeFiles: FuzzTarget<FilesInput> = {
  name: "store-files",
  proves:
    "a damaged store is refused with an error that names a file, and is unchanged; or it works, and keeps its rows",
  inputs: fc.record({
    left: fc.constantFrom("closed" as const, "open" as const),
    damages: fc.array(fc.record({ file: fc.constantFrom(...FILES), damage }), { minLength: 1, maxLength: 2 }),
  }),
  roundRuns: 100,
  ciRuns: 40,
  async open() {
    const base = mkdtempSync(join(GROUND, "parley-fuzz-store-"));
    const templates = await makeTemplates(base);
    return {
      async check(input) {
        const template = templates[input.left];
        const dir = join(base, "tried");
        rmSync(dir, { recursive: true, force: true });
        cpSync(template.dir, dir, { recursive: true });
        const [copy = ""] = readdirSync(dir).filter((name) => name.endsWith(".jsonl"));
        for (const { file, damage: how } of input.damages)
          damageFile(join(dir, file === COPY ? copy : file), how);
        const before = databaseHash(dir);
        const opened = await openIn(base, dir);
        if (!opened.ok) {
          must(opened.code === "store_unavailable", `refused with ${shown(opened)}`);
          must(
            opened.error.includes(dir) && !/\n\s+at /.test(opened.error),
            `refused with ${shown(opened.error)}`,
          );
          // When the store is closed, committed data in the log is written to the database, damaged or not.
          const isOfDatabase = input.left === "closed" && opened.error.includes(DATABASE);
          if (isOfDatabase) must(databaseHash(dir) === before, "refused, and written to");
          return;
        }
        try {
          await checkOpened(opened.value, template, input);
        } finally {
          await opened.value.close(0);
        }
        const again = await openIn(base, dir);
        if (!again.ok) return;
        const isWhole = !input.damages.some(({ file }) => file.startsWith(DATABASE) || file === COPY);
        await again.value.close(0);
        const last = isWhole ? await openIn(base, dir) : undefined;
        if (last?.ok === true) {
          await copiesWritten(last.value, dir);
          await last.value.close(0);
        }
      },
      close: async () => rmSync(base, { recursive: true, force: true }),
    };
  },
};
