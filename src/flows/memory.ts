// Changes the memory of an agent, for its tool and for operators.
// AM1: a change reads and writes the memory in one transaction that holds its row, so that of two changes at
//      once none is lost.
// AM2: a call that is repeated after a crash changes nothing again.
// AM3: secrets are redacted before the text is stored (I14).
// AM4: a change of a run with outside content waits for an owner (`instructions.ts`). A later change of
//      another run counts at once, and is made in the waiting text, too, if it fits there.

import { changedMemory, countedMemory, type MemoryChange } from "../core/rules/prompt/memory.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Engine } from "../engine/engine.ts";
import type { RunWait } from "../engine/lanes/waits.ts";
import type { Unit } from "../engine/unit.ts";
import { type AgentMemory, holdMemory, memoryRowId, writeMemory } from "../store/queries/agent-memory.ts";
import { deleteInstructionRows, putInstructionRow } from "../store/queries/instruction-contents.ts";

const CALLS_KEPT_MAX = 50;

interface ChangeOptions {
  /** Identifies a call that may be repeated. */
  readonly callId?: string;
  /** The change fails if the memory has another revision. */
  readonly revision?: number;
  /** Of the run that makes the change. Absent: an operator makes it. */
  readonly wait?: RunWait | undefined;
  /** The outside content of the caller. The change then waits for an owner (AM4). */
  readonly outside?: OutsideCaller | undefined;
}

/** Outside content, and the session and run that have it. */
export interface OutsideCaller {
  readonly source: string;
  readonly sessionKey: string;
  readonly runId?: string;
}

/** Returns the text and the text that counts after a change (AM4). */
function changeBoth(
  memory: AgentMemory,
  change: MemoryChange,
  waits: boolean,
): Result<{ text: string; counted: string }> {
  const counted = countedMemory(memory);
  const changed = changedMemory(waits ? memory.text : counted, change);
  if (!changed.ok) return changed;
  if (waits) return ok({ text: changed.value, counted });
  const also = memory.confirmed === undefined ? changed : changedMemory(memory.text, change);
  return ok({ text: also.ok ? also.value : memory.text, counted: changed.value });
}

/** Stores the text that counts, if it differs from the text with all changes. */
async function keepConfirmed(
  unit: Unit,
  agentId: string,
  { text, counted }: { readonly text: string; readonly counted: string },
  outside: OutsideCaller | undefined,
): Promise<void> {
  const id = memoryRowId(agentId);
  if (text === counted) return deleteInstructionRows(unit.tx, [id]);
  const { tx, now: at } = unit;
  if (outside === undefined) {
    await tx.updateTable("instruction_contents").set({ text: counted }).where("id", "=", id).execute();
    return;
  }
  await putInstructionRow(tx, { id, state: "pending", path: id, text: counted, at, ...outside });
  unit.publish({ kind: "session", sessionKey: outside.sessionKey, change: "state" });
}

export async function changeMemory(
  { commit }: Pick<Engine, "commit">,
  agentId: string,
  change: MemoryChange,
  { callId, revision, wait, outside }: ChangeOptions,
): Promise<Result<AgentMemory>> {
  return commit(async (unit): Promise<Result<AgentMemory>> => {
    if (wait !== undefined && !(await wait.holds(unit)))
      return fail("run_aborted", "the calling run has ended; nothing was written");
    const memory = await holdMemory(unit.tx, agentId, unit.now);
    if (callId !== undefined && memory.calls.includes(callId)) return ok(memory);
    if (revision !== undefined && memory.revision !== revision) {
      return fail("memory_changed", "the memory has changed since you read it, so nothing was written");
    }
    const changed = changeBoth(memory, change, outside !== undefined);
    if (!changed.ok) return changed;
    const { redactor } = unit;
    const text = redactor.mask(changed.value.text);
    const counted = redactor.mask(changed.value.counted);
    const calls = callId === undefined ? memory.calls : [...memory.calls, callId].slice(-CALLS_KEPT_MAX);
    const next = { text, revision: memory.revision + 1, calls };
    await writeMemory(unit.tx, agentId, next, unit.now);
    await keepConfirmed(unit, agentId, { text, counted }, outside);
    return ok(text === counted ? next : { ...next, confirmed: counted });
  });
}
