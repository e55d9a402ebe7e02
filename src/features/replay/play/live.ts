// The parts of a replay that do not come from the record. A session leaves its record at the first run whose
// agent, message or answers differ. From then on its models are really called; tools answer from the record
// if it has the call, and really run only if they are named.

import { type ModelPort, usageOf } from "../../../agent/model/model.ts";
import { canonicalJson } from "../../../core/json.ts";
import type { PromptPart } from "../../../core/rules/prompt/prompt.ts";
import { fail, toolFailure } from "../../../core/shapes/errors.ts";
import {
  isCompaction,
  resultIdOf,
  type ToolResultMessage,
  toolCallsOf,
} from "../../../core/shapes/message.ts";
import type { Variation } from "../../../core/shapes/record/variation.ts";
import type { Run } from "../../../core/shapes/run.ts";
import type { ProviderSettings } from "../../../core/shapes/settings/settings.ts";
import type { ToolCallRequest, ToolOutcome } from "../../../core/shapes/tool.ts";
import type { IdPairs } from "./ids.ts";
import type { Script, ScriptedRun } from "./script.ts";
import { changedPrompt, changesAgent, SESSION_TOOLS } from "./variation.ts";

/** The parts of a varied replay that reach outside of it. */
export interface LiveParts {
  readonly port: ModelPort;
  /** Providers with their keys. */
  readonly providers: readonly ProviderSettings[];
}

/** Texts that name how long something took. */
const DURATIONS = /runtime [\d.]+ ?\w+/g;

export class Live {
  readonly port: ModelPort;
  readonly variation: Variation;
  /** Work outside of the replay. Its clock runs in real time meanwhile. */
  readonly pending = new Set<Promise<unknown>>();
  /** Number of answers that models gave. */
  answers = 0;
  /** Cost of these answers in USD. */
  cost = 0;
  /** Number of calls that were not run, by tool. */
  readonly missing = new Map<string, number>();
  readonly #script: Script;
  readonly #ids: IdPairs;
  readonly #from: number | undefined;
  /** Sessions that left their record, by transcript. */
  readonly #left = new Set<string>();
  #results: Map<string, ToolResultMessage[]> | undefined;

  constructor(script: Script, ids: IdPairs, variation: Variation, { port }: LiveParts) {
    this.#script = script;
    this.#ids = ids;
    this.variation = variation;
    this.#from = variation.from === undefined ? undefined : script.placeOf(variation.from);
    this.port = {
      call: async (...request) => {
        this.answers += 1;
        const outcome = await this.track(port.call(...request));
        this.cost += usageOf(outcome)?.cost.total ?? 0;
        return outcome;
      },
    };
  }

  /** Lets the clock run in real time until the work has ended. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.pending.add(work);
    try {
      return await work;
    } finally {
      this.pending.delete(work);
    }
  }

  leave({ sessionId }: Pick<Run, "sessionId">): void {
    this.#left.add(sessionId);
  }

  hasLeft({ sessionId }: Pick<Run, "sessionId">): boolean {
    return this.#left.has(sessionId);
  }

  /** Returns whether the next answer of a run comes from a model. */
  isReal(run: Run, one: ScriptedRun | undefined, next: number): boolean {
    if (one === undefined || this.#differs(run, one, next)) this.leave(run);
    return this.hasLeft(run);
  }

  #differs(run: Run, one: ScriptedRun, next: number): boolean {
    const product = one.products[next];
    if (this.#from !== undefined)
      return product !== undefined && (this.#script.placeOf(product.id) ?? 0) >= this.#from;
    const agent = this.#script.settingsOf(one)?.agents.find(({ id }) => id === run.agentId);
    if (agent !== undefined && changesAgent(this.variation, agent)) return true;
    const same = (own = "", recorded = ""): boolean =>
      this.#ids.toRecord(own).replace(DURATIONS, "") === recorded.replace(DURATIONS, "");
    const { text, context } = one.run.input;
    return !same(run.input.text, text) || !same(run.input.context, context);
  }

  prompt(agentId: string, parts: readonly PromptPart[]): readonly PromptPart[] {
    return changedPrompt(this.variation, agentId, parts);
  }

  isLive(name: string): boolean {
    return this.variation.live.includes(name);
  }

  /** Answers a call of a session that left its record. */
  async call(
    request: ToolCallRequest,
    really: () => Promise<ToolOutcome>,
    recall: (result: ToolResultMessage) => Promise<ToolOutcome>,
  ): Promise<ToolOutcome> {
    const { name, arguments: args } = request;
    if (SESSION_TOOLS.test(name)) return really();
    if (this.isLive(name)) return this.track(really());
    const known = this.#listRecordedResults().get(`${name} ${this.#ids.toRecord(canonicalJson(args))}`);
    const result = known !== undefined && known.length > 1 ? known.shift() : known?.[0];
    if (result !== undefined) return recall(result);
    this.missing.set(name, (this.missing.get(name) ?? 0) + 1);
    const error = "not run: this is a replay, and its record has no such call";
    return { text: JSON.stringify(toolFailure(fail("tool_denied", error))), isError: true };
  }

  /** Recorded results, by tool and arguments. */
  #listRecordedResults(): Map<string, ToolResultMessage[]> {
    if (this.#results !== undefined) return this.#results;
    const found = new Map<string, ToolResultMessage[]>();
    for (const { products, results } of this.#script.runs) {
      for (const product of products) {
        if (isCompaction(product)) continue;
        toolCallsOf(product).forEach((call, index) => {
          const result = results.get(resultIdOf({ messageId: product.id, index }));
          const key = `${call.name} ${canonicalJson(call.arguments)}`;
          if (result !== undefined) found.set(key, [...(found.get(key) ?? []), result]);
        });
      }
    }
    this.#results = found;
    return found;
  }
}
