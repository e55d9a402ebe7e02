// Keeps finished outcomes of an evaluation in a file beside it, so that a stopped evaluation continues.

import { createHash } from "node:crypto";
import { appendFile, readFile, rm } from "node:fs/promises";
import { isObject, jsonOf } from "../../../core/json.ts";
import type { Case, Evaluation, Variant } from "./file.ts";
import type { Outcome } from "./outcome.ts";

export class Progress {
  readonly #path: string;
  readonly #judge: string | undefined;
  readonly #known = new Map<string, Outcome>();

  constructor(path: string, { judge }: Evaluation) {
    this.#path = `${path}.progress`;
    this.#judge = judge;
  }

  /** Reads the outcomes of a stopped evaluation. A torn last line is ignored. */
  async read(): Promise<number> {
    const text = await readFile(this.#path, "utf8").catch(() => "");
    for (const line of text.split("\n")) {
      const row = jsonOf(line);
      if (isObject(row) && typeof row.key === "string" && isObject(row.outcome))
        this.#known.set(row.key, row.outcome as unknown as Outcome);
    }
    return this.#known.size;
  }

  /**
   * Any edit of the case, its record, the variant, or the agents of a first message gives another key. Other
   * settings are left out: some depend on the environment.
   */
  #keyOf(one: Case, variant: Variant): string {
    const { start } = one;
    const from = "message" in start ? { ...start, settings: start.settings.agents } : start;
    const text = JSON.stringify([{ ...one, start: from }, variant, this.#judge]);
    return createHash("sha256").update(text).digest("base64url");
  }

  outcome(one: Case, variant: Variant): Outcome | undefined {
    return this.#known.get(this.#keyOf(one, variant));
  }

  async keep(one: Case, variant: Variant, outcome: Outcome): Promise<void> {
    await appendFile(this.#path, `${JSON.stringify({ key: this.#keyOf(one, variant), outcome })}\n`, {
      mode: 0o600,
    });
  }

  async done(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}
