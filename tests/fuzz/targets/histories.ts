// Transcripts of valid form with hostile content, as a tool returns them and as a model receives them.

import fc, { type Arbitrary } from "fast-check";
import { planCut } from "../../../src/agent/loop/compaction.ts";
import { modelView } from "../../../src/agent/loop/view.ts";
import { type Entry, isCompaction, type Message, toolCallsOf } from "../../../src/core/shapes/message.ts";
import { cutHistory } from "../../../src/core/text/history-cut.ts";
import { readEntry } from "../../../src/store/queries/transcripts/stored-entry.ts";
import { OFFLINE, startTurn, toolSpec } from "../../agent/turn-kit.ts";
import { assistantMessage, toolResult, userMessage } from "../../core/rows.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { damagedTree } from "../mutate.ts";
import { nastyText, nastyValue, objectOf } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";

interface HistoryInput {
  /** The rows of the transcript: role and content. */
  readonly rows: readonly { readonly role: string; readonly entry: unknown }[];
  readonly maxTextChars: number;
  readonly maxBytes: number;
}

const text = nastyText(20_000);
/** Only few ids, so that results often match a call, even twice and in the wrong order. */
const callId = fc.constantFrom("c1", "c2", "c1_2", "", "__proto__");
const call = fc.record({
  type: fc.constant("toolCall"),
  id: callId,
  name: fc.constantFrom("read", "exec", "__proto__"),
  arguments: fc.oneof(
    { weight: 3, arbitrary: fc.array(fc.tuple(text, nastyValue()), { maxLength: 3 }).map(objectOf) },
    { weight: 1, arbitrary: nastyValue() },
  ),
});
const said = fc.record({ type: fc.constant("text"), text });
const entry: Arbitrary<{ role: string; entry: unknown }> = fc.oneof(
  text.map((one) => ({ role: "user", entry: userMessage("", one) })),
  fc
    .tuple(
      fc.array(fc.oneof(said, call, call), { maxLength: 4 }),
      fc.constantFrom("stop", "toolUse", "error", "aborted", "injected", "length"),
    )
    .map(([content, stopReason]) => ({
      role: "assistant",
      entry: assistantMessage("", content as never, { stopReason }),
    })),
  fc.tuple(callId, text, nastyValue()).map(([toolCallId, one, details]) => ({
    role: "toolResult",
    entry: toolResult("", one, { toolCallId, details }),
  })),
  fc.constantFrom("e-0", "e-3", "nowhere").map((firstKeptId) => ({
    role: "compaction",
    entry: { id: "", type: "compaction", summary: "s", firstKeptId, timestamp: 1 },
  })),
);
const row = fc.oneof(
  { weight: 4, arbitrary: entry },
  {
    weight: 1,
    arbitrary: entry.chain(({ role, entry: one }) =>
      damagedTree(fc.constant(one), ["content", "arguments", "id"], 1).map((tree) => ({ role, entry: tree })),
    ),
  },
);

/**
 * Checks the output of a tool: it is within its limits, reports omissions, contains the newest messages,
 * and is redacted.
 */
async function checkShown(
  messages: readonly Message[],
  { maxTextChars, maxBytes }: HistoryInput,
): Promise<void> {
  const redacted = messages.map((message) => plainRedactor.message(message));
  const again = redacted.map((message) => plainRedactor.message(message));
  must(JSON.stringify(again) === JSON.stringify(redacted), "masking a message again changes it");
  const cut = await cutHistory(messages, { maxTextChars, maxBytes }, plainRedactor);
  const json = JSON.stringify(cut.messages);
  must(
    Buffer.byteLength(json) === cut.bytes && cut.bytes <= Math.max(2, maxBytes),
    `${cut.bytes} of ${maxBytes} bytes`,
  );
  must(
    cut.messages.length + cut.droppedMessages === messages.length,
    "a message is missing, and not counted",
  );
  const ids = messages.slice(cut.droppedMessages).map(({ id }) => id);
  must(
    JSON.stringify(cut.messages.map(({ id }) => id)) === JSON.stringify(ids),
    "others than the newest are kept",
  );
  must(cut.truncated === (json !== JSON.stringify(redacted)), `truncated is ${cut.truncated}`);
  for (const message of cut.messages) {
    for (const block of message.content)
      if (block.type === "text") must(block.text.length <= Math.max(60, maxTextChars), "a text is too long");
  }
}

/**
 * Checks the request to a model: each tool call is followed by its only result, in order, with a unique
 * id.
 */
function checkSent(entries: readonly Entry[]): void {
  const view = modelView(entries, OFFLINE);
  const used = new Set<string>();
  must(
    view.length > 0 && view[0]?.role === "user" && view.at(-1)?.role !== "assistant",
    "the first or the last word is the assistant's",
  );
  let owed: string[] = [];
  for (const message of view) {
    if (message.role === "toolResult") {
      must(
        owed[0] === message.toolCallId,
        `a result for ${shown(message.toolCallId)}, where one for ${shown(owed[0])} is owed`,
      );
      owed = owed.slice(1);
      continue;
    }
    must(owed.length === 0, `the call ${shown(owed[0])} has no result`);
    owed = toolCallsOf(message).map(({ id }) => id);
    for (const id of owed) must(!used.has(id), `the id ${shown(id)} is used twice`);
    for (const id of owed) used.add(id);
  }
  must(owed.length === 0, `the last call ${shown(owed[0])} has no result`);
}

/**
 * A second implementation of the pairing rule: a result belongs to the first open call with its id, in the
 * latest message that has such a call.
 */
function ownersOf(messages: readonly Message[]): Map<string, string> {
  const owners = new Map<string, string>();
  const taken = new Set<string>();
  messages.forEach((result, at) => {
    if (result.role !== "toolResult") return;
    const open = messages.slice(0, at).flatMap((message) =>
      toolCallsOf(message).flatMap(({ id }, index) => {
        const place = `${message.id}:${index}`;
        return id === result.toolCallId && !taken.has(place) ? [{ message, place }] : [];
      }),
    );
    const latest = open.at(-1)?.message;
    const owner = open.find(({ message }) => message === latest);
    if (owner === undefined) return;
    taken.add(owner.place);
    owners.set(result.id, owner.place);
  });
  return owners;
}

/** Checks that each stored result follows its own call and no other. */
function checkPairs(entries: readonly Entry[]): void {
  const messages = entries.filter((one): one is Message => !isCompaction(one));
  // Messages before a compaction are not paired with messages after it, so such transcripts are skipped.
  if (messages.length < entries.length) return;
  const owners = ownersOf(messages);
  let caller = "";
  let index = 0;
  for (const message of modelView(entries, OFFLINE)) {
    if (message.role === "assistant") [caller, index] = [message.id, 0];
    if (message.role !== "toolResult") continue;
    const place = `${caller}:${index}`;
    index += 1;
    const isRecorded = messages.some(({ id }) => id === message.id);
    if (isRecorded) must(owners.get(message.id) === place, `${message.id} stands behind the call ${place}`);
    else must(![...owners.values()].includes(place), `the result of the call ${place} is missing`);
  }
}

const TOOLS = [toolSpec("read", { parallel: true, idempotent: true }), toolSpec("exec")];

/** Checks that a turn can resume from any transcript, ends, and executes no call twice. */
async function checkResumed(entries: readonly Entry[]): Promise<void> {
  const ran: string[] = [];
  const turn = startTurn({
    port: scriptedModel(() => "done"),
    entries: [...entries],
    tools: TOOLS,
    more: { attempt: 2 },
    callTool: async ({ callId, arguments: args }) => {
      must(typeof args === "object" && args !== null && !Array.isArray(args), `called with ${shown(args)}`);
      ran.push(callId);
      return { text: "ran", isError: false };
    },
  });
  const end = await turn.end;
  must(end.kind === "ok" || end.kind === "error", `the turn ended ${end.kind}`);
  must(new Set(ran).size === ran.length, `a call ran twice: ${shown(ran)}`);
  checkSent(turn.entries);
}

export const histories: FuzzTarget<HistoryInput> = {
  name: "histories",
  proves:
    "what a tool shows keeps its limits and says so; what a model is sent has each call with its own result",
  inputs: fc.record({
    rows: fc.array(row, { maxLength: 10 }),
    maxTextChars: fc.integer({ min: 60, max: 5_000 }),
    maxBytes: fc.integer({ min: 2, max: 20_000 }),
  }),
  roundRuns: 1_000,
  ciRuns: 1_000,
  open: () => ({
    async check(input) {
      const entries = input.rows.map(({ role, entry: one }, index) =>
        readEntry({ id: `e-${index}`, role, entry_json: JSON.stringify(one) ?? "", created_at: 1 }),
      );
      const messages = entries.filter((one): one is Message => !isCompaction(one));
      await checkShown(messages, input);
      checkSent(entries);
      checkPairs(entries);
      await checkResumed(entries);
      const planned = planCut(messages, input.maxTextChars);
      if (planned !== undefined) checkSent(messages.slice(planned.older.length));
    },
  }),
};
