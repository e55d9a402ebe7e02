// Checks every conversation at the end of a story: each step happened once, each outcome was delivered once
// (I4, RB2).

import type { Story } from "../../story.ts";
import type { Row } from "../../world/database.ts";
import type { Books, RunBook } from "./books.ts";

const isSilent = (text: string): boolean => /^\s*(REPLY_SKIP|ANNOUNCE_SKIP)?\s*$/.test(text);

/**
 * Checks that the turns of a conversation have no gap, run in the right sessions, and contain the text of the
 * previous turn.
 */
function checkTurns(story: Story, books: Books, flow: Row, runs: readonly RunBook[]): void {
  const id = String(flow.flow_id);
  if (flow.state !== "ended") story.wrong("I2", `flow ${id} is never ended`);
  const turns = runs.filter((run) => run.step !== "announce").toSorted((a, b) => a.turn - b.turn);
  const numbers = turns.map((run) => run.turn);
  if (numbers.some((number, at) => number !== at + 1))
    story.wrong("I4", `flow ${id} has the turns ${numbers.join()}`);
  if (turns.length > Number(flow.turns_max) + 1) story.wrong("I8", `flow ${id} has ${turns.length} turns`);
  for (const [at, run] of turns.entries()) {
    const owner = run.turn % 2 === 0 ? flow.requester_key : flow.target_key;
    if (run.sessionKey !== owner) story.wrong("I4", `turn ${run.turn} of flow ${id} is in ${run.sessionKey}`);
    // The transcript stays the same, because a reset of a session ends its conversations.
    const first = run.turn % 2 === 0 ? flow.requester_session_id : turns[0]?.sessionId;
    if (run.sessionId !== first) story.wrong("LC1", `turn ${run.turn} of flow ${id} is in a new transcript`);
    const before = turns[at - 1];
    // A deletion blanks the texts of a session's runs.
    if (before === undefined || [before, run].some((one) => !books.sessions.has(one.sessionKey))) continue;
    if (before.reply !== run.text)
      story.wrong("I4", `turn ${run.turn} of flow ${id} is given ${run.text} after ${before.reply}`);
    if (before.state !== "ok" || isSilent(before.reply))
      story.wrong("I4", `turn ${run.turn} of flow ${id} follows one that said nothing`);
  }
}

function checkAnnounce(story: Story, books: Books, flow: Row, runs: readonly RunBook[]): void {
  const steps = runs.filter((run) => run.step === "announce");
  const id = String(flow.flow_id);
  if (steps.length > 1) story.wrong("I4", `flow ${id} has ${steps.length} announce steps`);
  const [step] = steps;
  if (step === undefined) return;
  if (step.sessionKey !== flow.target_key) story.wrong("I4", `flow ${id} is announced in ${step.sessionKey}`);
  const sent = books.deliveries.filter((row) => row.run_id === step.runId);
  const speaks = step.state === "ok" && !isSilent(step.reply);
  const about = `the announce step of flow ${id} (${String(flow.end_reason)})`;
  if (sent.length > 1) story.wrong("I4", `${about} is delivered ${sent.length} times`);
  if (!books.sessions.has(step.sessionKey)) return;
  if (!speaks && sent.length > 0) story.wrong("I5", `${about} said nothing and is delivered`);
  if (speaks && sent.length === 0 && flow.end_reason === "announced")
    story.wrong("I5", `${about} is delivered to nobody`);
  if (sent[0] !== undefined && sent[0].text !== step.reply)
    story.wrong("I5", `${about} is delivered in other words`);
}

/**
 * Checks that each outcome reached the message's sender once: through the sender's wait, a reply turn, or one
 * notice.
 */
function checkTold(story: Story, books: Books, flow: Row, runs: readonly RunBook[]): void {
  const first = runs.find((run) => run.step === "round1");
  if (first === undefined) return;
  const answered = books.waits.some(
    (wait) => wait.target_run_id === first.runId && wait.state === "answered",
  );
  const carried = runs.some((run) => run.step === "reply" && run.turn === 2);
  const notices = books.runs.filter(
    ({ provenance }) => provenance?.kind === "notice" && provenance.runId === first.runId,
  ).length;
  const about = `outcome of ${first.runId} (${first.state}): wait ${answered}, turn ${carried}, notices ${notices}`;
  if (notices > (answered || carried ? 0 : 1)) story.wrong("I4", `told twice: ${about}`);
  // A message that waits in an inbox has no outcome to report.
  if (first.kind === "append" && first.state === "ok") return;
  const requester = books.sessions.get(String(flow.requester_key));
  const isThere =
    requester !== undefined && requester.sessionId === flow.requester_session_id && !requester.archived;
  if (isThere && requester.key !== first.sessionKey && !answered && !carried && notices === 0)
    story.wrong("I2", `never told: ${about}`);
}

/** Checks that each wait has ended, and that none was answered after its deadline. */
function checkWaits(story: Story, books: Books): void {
  for (const wait of books.waits) {
    const about = `the wait of ${String(wait.call_id)}`;
    const endedAt = books.runOf.get(String(wait.target_run_id))?.endedAt;
    if (wait.state === "open") story.wrong("I2", `${about} never ends`);
    if (wait.state === "answered" && (endedAt === undefined || endedAt > Number(wait.deadline_at)))
      story.wrong(
        "I12",
        `${about} until ${String(wait.deadline_at)} counts as answered; the run ended at ${endedAt}`,
      );
  }
}

export function checkConversations(story: Story, books: Books): void {
  const byFlow = Map.groupBy(books.runs, (run) => run.flowId ?? "");
  for (const flow of books.flows) {
    if (flow.kind !== "send") continue;
    const runs = byFlow.get(String(flow.flow_id)) ?? [];
    checkTurns(story, books, flow, runs);
    checkAnnounce(story, books, flow, runs);
    checkTold(story, books, flow, runs);
  }
  checkWaits(story, books);
}
