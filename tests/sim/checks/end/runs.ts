// Checks every run at the end of a story: it is stored, ended for a known reason, in order, counted, and with
// the right provenance (I1, I2, I3, I8, I11).

import type { Story } from "../../story.ts";
import type { Books, RunBook } from "./books.ts";

const ENDS = ["ok", "error", "timeout", "aborted"];

/** Error codes of runs that end without a fault of a model: limits, removed agents, repeated crashes. */
const KNOWN_ERRORS = [
  / answered without text twice$/,
  /^the gateway process died \d times while it executed this run/,
  /is no longer configured \(agents\.list\)$/,
  /^this conversation has (used|cost|had|passed)/,
  /no longer fits the context window/,
  /^the store .* cannot grow/i,
];

function checkEnd(story: Story, run: RunBook): void {
  const { runId, state, startedAt, endedAt, acceptedAt, timeoutMs, code, error = "" } = run;
  const about = `run ${runId} of ${run.sessionKey}`;
  if (!ENDS.includes(state) || endedAt === undefined) {
    story.wrong("I2", `${about} is ${state} at the end`);
    return;
  }
  if ((startedAt ?? acceptedAt) < acceptedAt || endedAt < (startedAt ?? acceptedAt))
    story.wrong("I2", `${about} ended at ${endedAt}, began at ${startedAt}, was accepted at ${acceptedAt}`);
  if (state === "aborted" && story.stopped.size === 0)
    story.wrong("I2", `${about} is aborted (${code}), and nobody stopped anything`);
  if (state === "timeout" && (timeoutMs === 0 || endedAt - (startedAt ?? endedAt) < timeoutMs))
    story.wrong("I2", `${about} timed out, and its limit is ${timeoutMs} ms`);
  // A deletion blanks the error with the other texts of the session.
  if (state !== "error" || error === "") return;
  const made = (story.failures.get(runId) ?? []).some((text) => error.includes(text));
  if (!made && !KNOWN_ERRORS.some((known) => known.test(error)))
    story.wrong("I2", `${about} ends with an error that nobody made: ${error}`);
  if ((code === "run_crashed") !== (run.crashesInRow >= 3 || run.crashes >= 9))
    story.wrong("I2", `${about} ends ${code} after ${run.crashes} crashes, ${run.crashesInRow} in a row`);
}

/** I3: checks that the runs of a lane began in the order of the lane. */
function checkOrder(story: Story, lane: readonly RunBook[]): void {
  let before: RunBook | undefined;
  for (const run of lane) {
    if (before !== undefined && run.laneSeq === before.laneSeq)
      story.wrong("I3", `runs ${run.runId} and ${before.runId} have the same place in their lane`);
    if (before !== undefined && run.acceptedAt < before.acceptedAt)
      story.wrong("I3", `run ${run.runId} was accepted before ${before.runId}, and stands behind it`);
    const late = lane.find(
      (other) =>
        other.laneSeq < run.laneSeq && (other.endedAt ?? 0) > (run.startedAt ?? Number.POSITIVE_INFINITY),
    );
    if (late !== undefined) story.wrong("I3", `run ${run.runId} began before ${late.runId} had ended`);
    before = run;
  }
  for (const [key, begun] of story.begun) {
    const numbers = begun.map((one) => one.laneSeq);
    const wrong = numbers.findIndex((number, at) => number < (numbers[at - 1] ?? 0));
    if (wrong >= 0) story.wrong("I3", `turns of ${key} began in the order ${numbers.join()}`);
  }
}

/** I3: checks that messages from one connection to one session are in the same order in the lane. */
function checkSaid(story: Story, books: Books): void {
  for (const [line, said] of story.said) {
    const last = new Map<string, RunBook>();
    const seen = new Set<string>();
    for (const { runId } of said.toSorted((a, b) => a.at - b.at)) {
      const run = books.runOf.get(runId);
      // A message that was sent again in the same millisecond is noted twice.
      if (run === undefined || seen.has(runId)) continue;
      seen.add(runId);
      const before = last.get(run.sessionKey);
      if (before !== undefined && before.laneSeq > run.laneSeq)
        story.wrong("I3", `${line} said ${before.runId} before ${runId}, and it stands behind it`);
      last.set(run.sessionKey, run);
    }
  }
}

/** I8: checks that a run which another run requested has the next hop number. */
function checkHop(story: Story, books: Books, run: RunBook): void {
  const parent = run.parentRunId === undefined ? undefined : books.runOf.get(run.parentRunId);
  const about = `run ${run.runId} (${run.step})`;
  if (parent !== undefined && (run.hop !== parent.hop + 1 || run.chainId !== parent.chainId))
    story.wrong("I8", `${about} has hop ${run.hop}, and ${parent.runId}, which asked, has ${parent.hop}`);
  if (parent?.endedAt !== undefined && run.acceptedAt > parent.endedAt)
    story.wrong("I1", `${about} was accepted for ${parent.runId}, which had ended`);
  const { maxHops } = story.settingsAt(run.acceptedAt).session.agentToAgent;
  if (run.kind === "turn" && run.hop > maxHops)
    story.wrong("I8", `${about} has hop ${run.hop}; ${maxHops} are allowed`);
  const isNew = run.flowId === undefined && run.provenance === undefined;
  if (isNew && run.hop !== 0) story.wrong("I8", `${about} came from a person, and has hop ${run.hop}`);
}

/** I11: checks that each text that no person wrote has provenance. */
function checkProvenance(story: Story, books: Books, run: RunBook): void {
  const { provenance, runId, step, chainId, hop } = run;
  const about = `run ${runId} (${step}) of ${run.sessionKey}`;
  const flow = books.flows.find((one) => one.flow_id === run.flowId);
  if (flow === undefined) {
    const told =
      provenance === undefined || provenance.kind === "notice" || provenance.kind === "inter_session";
    if (!told) story.wrong("I11", `${about} says that it is from ${provenance?.kind}`);
    return;
  }
  if (provenance?.kind !== "inter_session") {
    story.wrong("I11", `${about} has no session that it is from`);
    return;
  }
  const { sourceSessionKey, sourceTool } = provenance;
  const tool = flow.kind === "spawn" ? "sessions_spawn" : "sessions_send";
  if (sourceTool !== tool) story.wrong("I11", `${about} comes from ${sourceTool}`);
  if (provenance.chainId !== chainId || provenance.hop !== hop)
    story.wrong(
      "I11",
      `${about} says chain ${provenance.chainId} and hop ${provenance.hop}, its row ${chainId}, ${hop}`,
    );
  const { requester_key: requester, target_key: target } = flow;
  const isOther = run.sessionKey === target ? requester : target;
  // A result comes from a sub-agent of the session. If the requester was deleted, an announce step names its
  // own session instead.
  const isBelow = step === "task" && story.known.get(sourceSessionKey)?.spawnedBy === run.sessionKey;
  const isSelf = step === "announce" && sourceSessionKey === run.sessionKey;
  if (sourceSessionKey !== isOther && !isBelow && !isSelf)
    story.wrong(
      "I11",
      `${about} says that it is from ${sourceSessionKey}, and its flow is ${requester} -> ${target}`,
    );
}

/**
 * I8: checks that a chain's count is the number of its turns, and that the chain's cost is the sum of the
 *     turns' costs.
 */
async function checkChains(story: Story, books: Books): Promise<void> {
  const turns = Map.groupBy(
    books.runs.filter((run) => run.kind === "turn"),
    (run) => run.chainId,
  );
  const rows = await story.look("select * from chains");
  const known = new Set(rows.map((row) => row.chain_id));
  for (const id of turns.keys()) if (!known.has(id)) story.wrong("I8", `chain ${id} is not counted`);
  for (const row of rows) {
    const id = String(row.chain_id);
    const own = turns.get(id) ?? [];
    if (own.length !== row.runs)
      story.wrong("I8", `chain ${id} counts ${String(row.runs)}, and has ${own.length} runs`);
    const tokens = own.reduce((sum, run) => sum + (run.usage?.totalTokens ?? 0), 0);
    if (tokens !== row.tokens)
      story.wrong("I8", `chain ${id} counts ${String(row.tokens)} tokens of ${tokens}`);
    for (const run of own) checkBudget(story, run, own);
    if (own.length > 0) checkOvershoot(story, own);
    const notices = books.runs.filter(
      ({ provenance }) =>
        provenance?.kind === "notice" && provenance.chainId === id && provenance.runId === undefined,
    );
    if (notices.length > 1) story.wrong("I4", `the budget of chain ${id} is told of ${notices.length} times`);
  }
}

/** I8: checks that a chain never used more tokens than the highest budget that applied to it. */
function checkOvershoot(story: Story, chain: readonly RunBook[]): void {
  const moments = chain.flatMap((run) => [run.acceptedAt, run.endedAt ?? story.time.now()]);
  const limits = moments.map(
    (at) => story.settingsAt(at).session.agentToAgent.maxChainTokens ?? Number.POSITIVE_INFINITY,
  );
  const tokens = chain.reduce((sum, run) => sum + (run.usage?.totalTokens ?? 0), 0);
  if (tokens > Math.max(...limits))
    story.wrong("I8", `a chain has used ${tokens} tokens of ${limits.join()}`);
}

/** I8: checks that no run began after the token budget was used up. */
function checkBudget(story: Story, run: RunBook, chain: readonly RunBook[]): void {
  const { startedAt } = run;
  const isRefused = run.code === "chain_limit";
  if (startedAt === undefined || isRefused) return;
  const { maxChainTokens, maxChainCost } = story.settingsAt(startedAt).session.agentToAgent;
  const before = chain.filter((other) => (other.endedAt ?? Number.POSITIVE_INFINITY) < startedAt);
  const tokens = before.reduce((sum, other) => sum + (other.usage?.totalTokens ?? 0), 0);
  const cost = before.reduce((sum, other) => sum + (other.usage?.cost.total ?? 0), 0);
  if (
    tokens >= (maxChainTokens ?? Number.POSITIVE_INFINITY) ||
    cost >= (maxChainCost ?? Number.POSITIVE_INFINITY)
  )
    story.wrong("I8", `run ${run.runId} began when its chain had used ${tokens} tokens and ${cost} USD`);
}

/**
 * I4: checks that each text sent by a tool call was accepted once, and that each command was executed at most
 * once.
 */
function checkOnce(story: Story, books: Books): void {
  // The texts of deleted sessions are blank.
  const asked = books.runs.filter((run) => run.callId !== undefined && run.text !== "");
  for (const [text, runs] of Map.groupBy(asked, (run) => run.text)) {
    if (runs.length > 1)
      story.wrong("I4", `${JSON.stringify(text)} is accepted as ${runs.map((run) => run.runId).join()}`);
  }
  for (const [word, times] of story.commands)
    if (times > 1) story.wrong("I4", `the command ${word} is carried out ${times} times`);
}

export async function checkRuns(story: Story, books: Books): Promise<void> {
  for (const runId of story.promised)
    if (!books.runOf.has(runId)) story.wrong("I2", `run ${runId} was promised and is gone`);
  for (const run of books.runs) {
    checkEnd(story, run);
    checkHop(story, books, run);
    checkProvenance(story, books, run);
  }
  for (const lane of books.lanes.values()) checkOrder(story, lane);
  checkSaid(story, books);
  await checkChains(story, books);
  checkOnce(story, books);
}
