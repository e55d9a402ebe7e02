// Changes the memory of an agent, for its tool and for operators.
// AM1: a change reads and writes the memory in one transaction that holds its row, so that of two changes at
//      once none is lost.
// AM2: a call that is repeated after a crash changes nothing again.
// AM3: secrets are redacted before the text is stored (I14).

import { changedMemory, type MemoryChange } from "../core/rules/prompt/memory.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Engine } from "../engine/engine.ts";
import type { RunWait } from "../engine/lanes/waits.ts";
import { type AgentMemory, holdMemory, writeMemory } from "../store/queries/agent-memory.ts";

const CALLS_KEPT_MAX = 50;

interface ChangeOptions {
  /** Identifies a call that may be repeated. */
  readonly callId?: string;
  /** The change fails if the memory has another revision. */
  readonly revision?: number;
  /** Of the run that makes the change. Absent: an operator makes it. */
  readonly wait?: RunWait | undefined;
}

export async function changeMemory(
  { commit }: Pick<Engine, "commit">,
  agentId: string,
  change: MemoryChange,
  { callId, revision, wait }: ChangeOptions,
): Promise<Result<AgentMemory>> {
  return commit(async (unit): Promise<Result<AgentMemory>> => {
    if (wait !== undefined && !(await wait.holds(unit)))
      return fail("run_aborted", "the calling run has ended; nothing was written");
    const memory = await holdMemory(unit.tx, agentId, unit.now);
    if (callId !== undefined && memory.calls.includes(callId)) return ok(memory);
    if (revision !== undefined && memory.revision !== revision) {
      return fail("memory_changed", "the memory has changed since you read it, so nothing was written");
    }
    const text = changedMemory(memory.text, change);
    if (!text.ok) return text;
    const calls = callId === undefined ? memory.calls : [...memory.calls, callId].slice(-CALLS_KEPT_MAX);
    const next = { text: unit.redactor.mask(text.value), revision: memory.revision + 1, calls };
    await writeMemory(unit.tx, agentId, next, unit.now);
    return ok(next);
  });
}
