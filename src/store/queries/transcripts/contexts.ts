// Caches the context (the entries that the model sees) of recently used transcripts, so that a run reads and
// checks only the newer entries. Stored entries never change, and only the run that holds the session's lane
// writes entries. So the entries of a transcript are committed in the order of their positions.

import type { Entry } from "../../../core/shapes/message.ts";
import type { Db } from "../../sql.ts";
import { readEntry } from "./stored-entry.ts";
import { type ContextRow, contextRows, rowsAfter } from "./transcripts.ts";

/**
 * Maximum total size of the cached contexts, in characters of JSON, and maximum number of contexts. The least
 * recently used are evicted.
 */
const CHARS_MAX = 2 * 1024 * 1024;
const CONTEXTS_MAX = 256;

interface Context {
  readonly entries: readonly Entry[];
  /** The newest entry. Undefined: the transcript is empty. */
  readonly last: Pick<ContextRow, "seq" | "id"> | undefined;
  /** Size in characters of JSON. */
  readonly chars: number;
}

const EMPTY: Context = { entries: [], last: undefined, chars: 0 };

/**
 * Adds rows to a context. The newest row need not be the last: a compaction comes before the older entries
 * that it kept.
 */
function extendContext(context: Context, rows: readonly ContextRow[]): Context {
  let { last, chars } = context;
  for (const { seq, id, entry_json } of rows) {
    if (last === undefined || seq > last.seq) last = { seq, id };
    chars += entry_json.length;
  }
  return { entries: [...context.entries, ...rows.map(readEntry)], last, chars };
}

export class Contexts {
  readonly #db: Db;
  /** Contexts by transcript id. The most recently used ones come last. */
  readonly #cached = new Map<string, Context>();
  #chars = 0;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Returns the entries of a transcript that the model sees (`readContext`). */
  async read(sessionId: string): Promise<readonly Entry[]> {
    const cached = this.#cached.get(sessionId);
    this.#drop(sessionId);
    const newer = cached?.last && (await rowsAfter(this.#db, sessionId, cached.last));
    const context =
      cached === undefined || newer === undefined
        ? extendContext(EMPTY, await contextRows(this.#db, sessionId))
        : extendContext(cached, newer);
    this.#drop(sessionId);
    // A context this large would evict all others, and in the end itself.
    if (context.chars > CHARS_MAX) return context.entries;
    this.#cached.set(sessionId, context);
    this.#chars += context.chars;
    for (const oldest of this.#cached.keys()) {
      if (this.#chars <= CHARS_MAX && this.#cached.size <= CONTEXTS_MAX) break;
      this.#drop(oldest);
    }
    return context.entries;
  }

  clear(): void {
    this.#cached.clear();
    this.#chars = 0;
  }

  #drop(sessionId: string): void {
    this.#chars -= this.#cached.get(sessionId)?.chars ?? 0;
    this.#cached.delete(sessionId);
  }
}
