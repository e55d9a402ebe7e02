// Helpers for import tests: a home with one of the two stores, and functions that read the imported data.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Result } from "../../../src/core/shapes/errors.ts";
import type { Message } from "../../../src/core/shapes/message.ts";
import type { Session } from "../../../src/core/shapes/session.ts";
import {
  type ImportOptions,
  type ImportReport,
  importState,
} from "../../../src/features/import/import-state.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { readHistory } from "../../../src/store/queries/transcripts/transcripts.ts";
import type { Store } from "../../../src/store/sql.ts";
import { quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { freshUrl, good, inEmbedded, inPostgres } from "../../store/transfer/moves.ts";

export type Kind = "embedded" | "postgres";

export interface Stage {
  readonly home: string;
  import(dir: string, more?: Partial<ImportOptions>): Promise<Result<ImportReport>>;
  imported(dir: string, more?: Partial<ImportOptions>): Promise<ImportReport>;
  inStore<T>(work: (store: Store) => Promise<T>): Promise<T>;
  session(key: string): Promise<Session | undefined>;
  /** Returns the messages of a session in the form of `sessions_history`, including tool results. */
  history(key: string): Promise<readonly Message[]>;
  /** Returns the history as short lines with role and text. */
  said(key: string): Promise<string[]>;
}

/** Makes the home. `config`: Parley's own configuration; if absent, the home has none. */
export async function stage(kind: Kind, config?: Record<string, unknown>): Promise<Stage> {
  const home = temporaryFolder();
  const url = kind === "postgres" ? await freshUrl() : undefined;
  const env: Record<string, string> = url === undefined ? {} : { PARLEY_DATABASE_URL: url };
  if (config !== undefined) {
    mkdirSync(join(home, ".parley"), { recursive: true });
    writeFileSync(join(home, ".parley", "parley.json5"), JSON.stringify(config), { mode: 0o600 });
  }
  const { signal } = new AbortController();
  const run: Stage["import"] = (dir, more = {}) =>
    importState({ dir, dryRun: false, home, env, world: quietWorld(), signal, progress: () => {}, ...more });
  const inStore: Stage["inStore"] = (work) =>
    url === undefined ? inEmbedded(join(home, ".parley", "state"), work) : inPostgres(url, work);
  const session: Stage["session"] = (key) => inStore((store) => getSession(store.db, key));
  const history: Stage["history"] = async (key) => {
    const found = await session(key);
    if (found === undefined) return [];
    const { sessionId } = found;
    return inStore(async (store) => {
      return good(await readHistory(store.db, { sessionId, limit: 1000, includeTools: true })).messages;
    });
  };
  return {
    home,
    import: run,
    imported: async (dir, more) => good(await run(dir, more)),
    inStore,
    session,
    history,
    said: async (key) => (await history(key)).map(line),
  };
}

function line(message: Message): string {
  const words = message.content.map((block) => {
    if (block.type === "text") return block.text;
    return block.type === "toolCall" ? `<call ${block.name} ${block.id}>` : `<${block.type}>`;
  });
  const from = message.role === "user" ? (message.provenance?.kind ?? "person") : message.role;
  return `${from}: ${words.join(" ")}`;
}

/** Returns what a report says about this part of the configuration. */
export function remark(report: ImportReport, part: string): ImportReport["remarks"][number] | undefined {
  return report.remarks.find(({ what }) => what.includes(part));
}
