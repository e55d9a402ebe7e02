// Checks every transcript at the end of a story: it is valid for any model, complete, unchanged, without
// repetitions, and its cost is counted once (I4, I10, I11, I14).

import { isCompaction, textOf, toolCallsOf } from "../../../../src/core/shapes/message.ts";
import { WEBCHAT } from "../../../../src/core/shapes/route.ts";
import type { Story } from "../../story.ts";
import { type Books, type MessageBook, messageIn, type RunBook, routeName } from "./books.ts";

/** Checks that each call has one result before the next message. */
function checkPairs(story: Story, sessionId: string, books: readonly MessageBook[]): void {
  let open: string[] = [];
  for (const message of books.flatMap(messageIn)) {
    if (message.role === "toolResult") {
      const at = open.indexOf(message.toolCallId);
      if (at < 0) story.wrong("transcript", `${sessionId}: ${message.id} answers a call that is not open`);
      open.splice(at, 1);
      continue;
    }
    if (open.length > 0)
      story.wrong("transcript", `${sessionId}: ${message.id} comes before ${open.join()} is answered`);
    open = toolCallsOf(message).map((call) => call.id);
  }
  if (open.length > 0) story.wrong("transcript", `${sessionId} ends with ${open.join()} unanswered`);
}

/** Checks that the input of a run is its first message, once and unchanged. */
function checkInput(story: Story, run: RunBook, own: readonly MessageBook[]): void {
  const begun = run.startedAt !== undefined && !/^the gateway stopped/.test(run.error ?? "");
  const [first, ...rest] = own.flatMap(messageIn);
  const about = `run ${run.runId} of ${run.sessionKey}`;
  if (!begun) return;
  if (first === undefined) {
    story.wrong("I2", `${about} began, and what it was given is not written down`);
    return;
  }
  if (textOf(first) !== run.text)
    story.wrong(
      "I14",
      `${about} was given ${JSON.stringify(run.text)}, and ${JSON.stringify(textOf(first))} is kept`,
    );
  const role = run.injected ? "assistant" : "user";
  if (first.role !== role) story.wrong("transcript", `${about} begins with a message of ${first.role}`);
  if (rest.some((message) => message.role === "user")) story.wrong("I4", `${about} has its input twice`);
  const provenance = first.role === "user" ? first.provenance : undefined;
  if (role === "user" && JSON.stringify(provenance) !== JSON.stringify(run.provenance))
    story.wrong("I11", `${about}: the message says ${JSON.stringify(provenance)}`);
  if (run.kind === "append" && rest.length > 0) story.wrong("I4", `${about} is an append, and says more`);
  const answers = rest.filter((message) => message.role === "assistant");
  const last = answers.findLast((message) => textOf(message).trim() !== "") ?? answers.at(-1);
  if (run.state === "ok" && run.kind === "turn" && (last === undefined || textOf(last) !== run.reply))
    story.wrong(
      "I12",
      `${about} replied ${JSON.stringify(run.reply)}, and wrote ${last && JSON.stringify(textOf(last))}`,
    );
}

/** Checks that no text of a model is stored twice, by the unique word in each. */
function checkTwice(story: Story, messages: readonly MessageBook[]): void {
  const said = new Set<string>();
  for (const message of messages.flatMap(messageIn)) {
    if (message.role !== "assistant" || message.stopReason === "injected") continue;
    const word = /^w\w+x\b/.exec(textOf(message))?.[0];
    if (word === undefined) continue;
    if (said.has(word)) story.wrong("I4", `${word} is kept twice`);
    said.add(word);
  }
}

/** I14: no transcript contains the content of an attachment. */
function checkContents(story: Story, messages: readonly MessageBook[]): void {
  for (const { json, sessionKey } of messages) {
    const content = story.contents.find((one) => json.includes(one));
    if (content !== undefined)
      story.wrong("I14", `the transcript of ${sessionKey} holds the attachment ${content}`);
  }
}

/**
 * I4: checks that usage is counted once in each of three places: the run's row, the ledger and the
 * session.
 */
async function checkUsage(
  story: Story,
  books: Books,
  byRun: ReadonlyMap<string, readonly MessageBook[]>,
): Promise<void> {
  const ledger = new Map<string, number>();
  for (const row of await story.look("select run_id, total_tokens from ledger")) {
    const id = String(row.run_id);
    if (ledger.has(id)) story.wrong("I4", `run ${id} is paid for twice`);
    ledger.set(id, Number(row.total_tokens));
  }
  for (const run of books.runs) {
    const tokens = run.usage?.totalTokens ?? 0;
    if (tokens !== (ledger.get(run.runId) ?? 0))
      story.wrong("I4", `run ${run.runId} used ${tokens} tokens, and ${ledger.get(run.runId)} are paid for`);
    const own = byRun.get(run.runId) ?? [];
    if (!books.transcripts.has(run.sessionId) || own.some(({ entry }) => isCompaction(entry))) continue;
    const told = own
      .flatMap(messageIn)
      .flatMap((message) => (message.role === "assistant" ? [message.usage, message.earlierUsage] : []))
      .reduce((sum, usage) => sum + (usage?.totalTokens ?? 0), 0);
    // A run that was stopped after an empty answer has used tokens without a message.
    if (told > tokens || (told < tokens && run.state === "ok"))
      story.wrong("I4", `run ${run.runId} used ${tokens} tokens, and its messages say ${told}`);
  }
  for (const session of books.sessions.values()) {
    const own = (books.lanes.get(session.key) ?? []).filter((run) => run.sessionId === session.sessionId);
    const tokens = own.reduce((sum, run) => sum + (run.usage?.totalTokens ?? 0), 0);
    if (tokens !== session.totalTokens)
      story.wrong("I4", `${session.key} counts ${session.totalTokens} tokens, its runs used ${tokens}`);
  }
}

/**
 * Returns true if the route of a run is only the destination of its answer: the request came from a program
 * and names a channel other than webchat.
 */
function isDelivery({ runId, route }: RunBook): boolean {
  return runId.startsWith("run") && route?.channel !== WEBCHAT;
}

/** I10: checks that a session's route is that of the last person's message with a route. */
function checkRoutes(story: Story, books: Books): void {
  for (const session of books.sessions.values()) {
    const direct = (books.lanes.get(session.key) ?? []).filter(
      (run) => run.provenance === undefined && run.route !== undefined && !isDelivery(run),
    );
    const last = direct.at(-1)?.route;
    const expected = last === undefined ? story.firstRoutes.get(session.key) : routeName(last);
    if (session.lastRoute !== expected)
      story.wrong(
        "I10",
        `the route of ${session.key} is ${session.lastRoute}; people wrote from ${expected}`,
      );
  }
}

export async function checkTranscripts(story: Story, books: Books): Promise<void> {
  const bySession = Map.groupBy(books.messages, (message) => message.sessionId);
  const byRun = Map.groupBy(books.messages, (message) => message.runId ?? "");
  for (const [sessionId, messages] of bySession) {
    if (!books.transcripts.has(sessionId))
      story.wrong("I4", `messages of the deleted transcript ${sessionId} are left`);
    checkPairs(story, sessionId, messages);
  }
  for (const run of books.runs) {
    if (books.transcripts.has(run.sessionId)) checkInput(story, run, byRun.get(run.runId) ?? []);
  }
  checkTwice(story, books.messages);
  checkContents(story, books.messages);
  checkRoutes(story, books);
  await checkUsage(story, books, byRun);
}
