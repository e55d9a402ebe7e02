// Keeps the typed texts over starts, in a file that only its owner can read: one JSON string for each line.
// Credentials in a text are redacted before it is written.

import { chmodSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { replaceFile } from "../../config/replace-file.ts";
import { jsonOf } from "../../core/json.ts";
import { Redactor } from "../../core/text/redact/redact.ts";
import { safeText } from "../../core/text/safe-text.ts";

/** Maximum number of texts in the file. The oldest ones are dropped. */
const TEXTS_MAX = 500;
/** A longer text is not kept. */
const TEXT_CHARS_MAX = 10_000;
const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;

export class TypedHistory {
  readonly #file: string;
  readonly #redactor = new Redactor([]);

  constructor(home: string) {
    this.#file = join(home, ".parley", "chat-history.jsonl");
  }

  /** Returns the texts, oldest first. */
  read(): string[] {
    if (!existsSync(this.#file)) return [];
    const values = readFileSync(this.#file, "utf8").split("\n").map(jsonOf);
    return values.filter((value) => typeof value === "string").map(safeText);
  }

  /** Adds a text. Reads the file again, because another chat may have written it. */
  add(text: string): void {
    if (text.length > TEXT_CHARS_MAX) return;
    const texts = [...this.read(), this.#redactor.mask(text)].slice(-TEXTS_MAX);
    mkdirSync(dirname(this.#file), { recursive: true, mode: PRIVATE_FOLDER });
    if (existsSync(this.#file)) chmodSync(this.#file, PRIVATE_FILE);
    replaceFile(this.#file, texts.map((one) => `${JSON.stringify(one)}\n`).join(""), PRIVATE_FILE);
  }
}
