// Names the inputs of a run by hashes, so that the run can be repeated later: prompt, tools, model and
// settings. Equal inputs are hashed once, and stored once.

import { createHash } from "node:crypto";
import { evictOldest, oncePerTool, remember } from "../core/bounded.ts";
import { optional } from "../core/optional.ts";
import type { PromptPart } from "../core/rules/prompt/prompt.ts";
import {
  type Revision,
  type RevisionKind,
  type RunInputs,
  SESSION_PLACE,
  type WorkingRevision,
} from "../core/shapes/record/revision.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { ToolSpec } from "../core/shapes/tool.ts";

/** Characters of a hash: 132 bits of SHA-256. */
const HASH_CHARS = 22;
/** Maximum number of texts whose hashes are cached. */
const TEXTS_MAX = 500;
/** Maximum number of hashes that are known to be stored. */
const STORED_MAX = 10_000;
/**
 * A revision that is used for longer than this is stored again, so that it does not count as unused. Until
 * then its row names an earlier use.
 */
export const STORE_AGAIN_MS = 6 * 3_600_000;

function revisionOf(kind: RevisionKind, value: unknown): Revision {
  const body = JSON.stringify(value);
  const digest = createHash("sha256").update(`${kind}\n${body}`).digest("base64url");
  return { hash: digest.slice(0, HASH_CHARS), kind, body };
}

export interface RecordedTurn extends Pick<RunInputs, "context" | "model" | "thinking"> {
  readonly settings: Settings;
  /** Parts of the prompt, without the context of the run. */
  readonly prompt: readonly PromptPart[];
  /** The session's key, as it is written in the prompt. */
  readonly sessionKey: string;
  readonly tools: readonly ToolSpec[];
}

export interface RecorderParts {
  readonly version: string;
  now(): number;
  /** Returns the settings without their secrets. */
  withoutSecrets(settings: Settings): Settings;
}

export class Recorder {
  readonly #parts: RecorderParts;
  readonly #texts = new Map<string, Revision>();
  readonly #settings = new WeakMap<Settings, Revision>();
  readonly #toolOf = oncePerTool(({ name, description, parameters, parallel, idempotent }: ToolSpec) =>
    revisionOf("tool", { name, description, parameters, parallel, idempotent }),
  );
  /** Time at which this process last stored a revision, by hash. */
  readonly #storedAt = new Map<string, number>();

  constructor(parts: RecorderParts) {
    this.#parts = parts;
  }

  /** Returns the revision of a run that begins. */
  revisionOf(turn: RecordedTurn): WorkingRevision {
    const { model, thinking, context } = turn;
    const settings = this.#settingsOf(turn.settings);
    const prompt = turn.prompt.map((part) => this.#promptOf(part, turn.sessionKey));
    const tools = turn.tools.map((spec) => this.#toolOf(spec));
    const list = this.#textOf("tools", `tools ${tools.map(({ hash }) => hash).join()}`, () =>
      tools.map(({ hash }) => hash),
    );
    const inputs: RunInputs = {
      version: this.#parts.version,
      ...{ model, thinking, settings: settings.hash, tools: list.hash },
      prompt: prompt.map(({ hash }) => hash),
      ...optional({ context }),
    };
    const run = this.#textOf("run", `run ${JSON.stringify(inputs)}`, () => inputs);
    const now = this.#parts.now();
    const rows = [run, settings, list, ...prompt, ...tools].filter(({ hash }) => {
      const storedAt = this.#storedAt.get(hash);
      return storedAt === undefined || now - storedAt > STORE_AGAIN_MS;
    });
    return { hash: run.hash, rows, noteStored: () => this.#noteStored(rows, now) };
  }

  #noteStored(rows: readonly Revision[], at: number): void {
    for (const { hash } of rows) {
      this.#storedAt.set(hash, at);
      evictOldest(this.#storedAt, STORED_MAX);
    }
  }

  #textOf(kind: RevisionKind, key: string, value: () => unknown): Revision {
    return remember(this.#texts, key, TEXTS_MAX, () => revisionOf(kind, value()));
  }

  #settingsOf(settings: Settings): Revision {
    const known = this.#settings.get(settings);
    if (known !== undefined) return known;
    const made = revisionOf("settings", this.#parts.withoutSecrets(settings));
    this.#settings.set(settings, made);
    return made;
  }

  #promptOf({ title, file, text: whole }: PromptPart, sessionKey: string): Revision {
    const text = whole.replace(`\nSession: ${sessionKey}\n`, () => `\nSession: ${SESSION_PLACE}\n`);
    return this.#textOf("prompt", `prompt ${title}\n${text}`, () => ({ title, ...optional({ file }), text }));
  }
}
