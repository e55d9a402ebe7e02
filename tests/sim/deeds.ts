// Random actions of people, client programs and machines on a running gateway.

import { operatorViewer } from "../../src/access/access.ts";
import { sendDirect } from "../../src/flows/conversation/direct.ts";
import { noteReading } from "../../src/flows/conversation/inbox-receipts.ts";
import { sendToSession } from "../../src/flows/conversation/send.ts";
import type { Answer } from "../../src/gateway/socket/connection.ts";
import { isInDoubt, StoreProblem } from "../../src/store/problems.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import { OWNER_TOKEN } from "./plan.ts";
import type { GatewayProcess } from "./process.ts";
import { checkAnswer, noteAsked, type Request, repeated, someRequest } from "./requests.ts";
import type { KeyedRequest, Story } from "./story.ts";
import { Violation } from "./trace.ts";
import { textAround } from "./words.ts";
import type { Client } from "./world/client.ts";
import { Dead } from "./world/faults.ts";

/** Returns true if the story, and not the product, has caused a failure. */
export function isExpected(error: unknown): boolean {
  return error instanceof StoreProblem || error instanceof Dead || error instanceof Violation;
}

/** Sends a message of a person on a channel. */
async function write(story: Story, process: GatewayProcess): Promise<void> {
  const luck = story.luck("people");
  const keys = [...(await story.refresh()).keys()];
  const session = await getSession(process.engine.store.db, luck.of(keys));
  if (session === undefined) return;
  const text = textAround(story, luck, story.word("p"));
  const to = luck.of(["ann", "bob"]);
  const route = { channel: luck.of(["sure", "plain", "webchat"]), to };
  const limit = luck.chance(0.1) ? { timeoutMs: 1 + luck.below(50) } : {};
  const place = luck.chance(0.6) ? { route } : {};
  story.trace.add(`${to} writes to ${session.key}: ${text}`);
  const { engine, settings } = process;
  const accepted = await sendDirect({ engine, settings }, { session, text, ...place, ...limit });
  if (accepted.ok) story.promised.add(accepted.value.run.runId);
}

/** Sends the request of a client program in this process: without a socket, but through the same checks. */
async function ask(story: Story, process: GatewayProcess, token: string, request: Request): Promise<void> {
  const caller = await process.authority.admit("a program", { token });
  if (!caller.ok) return story.wrong("door", caller.error);
  const asked = noteAsked(story, token, request);
  const { method, params } = request;
  story.trace.add(`a program asks ${method} ${JSON.stringify(params)}`);
  const gone = new AbortController();
  if (story.luck("people").chance(0.15)) story.time.after(story.luck("people").below(60), () => gone.abort());
  let answer: Answer;
  try {
    answer = await process.dispatcher.call(caller.value, method, params, gone.signal);
  } catch (error) {
    if (asked.keyed !== undefined) asked.keyed.lost = true;
    if (isInDoubt(error)) story.wrong("I4", `${method} throws a failure that was none`);
    throw error;
  }
  story.trace.add(`a program is answered ${answer.result.ok ? "ok" : answer.result.error}`);
  await checkAnswer(story, asked, answer.result);
  const second = await answer.later;
  if (second !== undefined) await checkAnswer(story, asked, second, true);
}

/** Repeats an earlier request with the same idempotency key. */
export function askAgain(
  story: Story,
  process: GatewayProcess,
  clients: readonly Client[],
  old: KeyedRequest,
): void {
  const luck = story.luck("people");
  const request = repeated({ method: old.method, params: old.params }, luck, story);
  const client = clients.find((one) => one.token === old.token && one.ready);
  if (client !== undefined) client.ask(request);
  else void guarded(story, process, () => ask(story, process, old.token, request));
}

/** Runs an action. A failure that the story has not caused is a fault of the product. */
async function guarded(story: Story, process: GatewayProcess, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (isExpected(error) || !process.alive()) return;
    story.violation ??= new Violation(
      "door",
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    );
  }
}

function disturb(story: Story, process: GatewayProcess, clients: readonly Client[]): void {
  const luck = story.luck("people");
  if (story.plan.features.pauses && luck.chance(0.4)) {
    process.pause();
    story.time.after(luck.of([5, 60, 3_000, 40_000]), () => process.alive() && process.resume());
    return;
  }
  if (clients.length === 0) return;
  const client = luck.of(clients);
  if (luck.chance(0.4)) client.dawdle(luck.below(100));
  else if (luck.chance(0.5)) client.drop();
  else client.connect(process);
}

/** Acts as the program that reads an inbox: it gets some messages, or confirms some, often twice. */
async function readInbox(story: Story, process: GatewayProcess): Promise<void> {
  // Separate random numbers, so that stories without messages in inboxes stay the same.
  const luck = story.luck("inbox");
  if (luck.chance(0.5)) return;
  const rows = await story.look("select run_id from inbox_marks order by run_id desc limit 5");
  const runIds = rows.map((row) => String(row.run_id)).filter(() => luck.chance(0.6));
  if (runIds.length === 0) return;
  story.trace.add(`a program reads its inbox: ${runIds.join(" ")}`);
  if (luck.chance(0.7)) await noteReading(process.engine, runIds, "offered");
  if (luck.chance(0.5)) await noteReading(process.engine, runIds, "in_turn");
}

/** Acts as the program that reads an inbox: it answers one of the messages, which it names. */
async function answerInbox(story: Story, process: GatewayProcess): Promise<void> {
  const luck = story.luck("answers");
  const open = await story.look(
    `select k.run_id, k.session_key, f.requester_key from inbox_marks k join runs r on r.run_id = k.run_id
      join flows f on f.flow_id = r.flow_id where k.ended_at is null and r.state = 'ok' order by k.run_id limit 5`,
  );
  if (open.length < 2 || luck.chance(0.7)) return;
  const { run_id, session_key, requester_key } = luck.of(open);
  const { engine, settings } = process;
  const requester = await getSession(engine.store.db, String(session_key));
  const target = await getSession(engine.store.db, String(requester_key));
  if (requester === undefined || target === undefined) return;
  const inReplyTo = String(run_id);
  story.trace.add(`a program answers ${inReplyTo} of ${target.key}`);
  const sent = await sendToSession(
    { engine, settings },
    {
      ...{ requester, target, inReplyTo, viewer: operatorViewer(["operator.admin"]), timeoutSeconds: 0 },
      ...{ text: story.word("a"), callId: story.word("answer"), signal: new AbortController().signal },
    },
  );
  const [mark] = await story.look("select outcome from inbox_marks where run_id = ?", inReplyTo);
  if (sent.ok && mark !== undefined && mark.outcome !== "answered")
    story.wrong("I4", `the answer to message ${inReplyTo} went to another one`);
}

/** Performs one random action of a person, a client program or the machine. */
export async function doSomething(
  story: Story,
  process: GatewayProcess,
  clients: readonly Client[],
): Promise<void> {
  const luck = story.luck("people");
  await guarded(story, process, () => readInbox(story, process));
  await guarded(story, process, () => answerInbox(story, process));
  const roll = luck.below(100);
  if (roll < 12) return disturb(story, process, clients);
  if (roll < 45) return guarded(story, process, () => write(story, process));
  const old = [...story.keyed.values()];
  if (roll < 55 && old.length > 0) return askAgain(story, process, clients, luck.of(old));
  await story.refresh();
  const request = await someRequest(story, luck);
  const ready = clients.filter((client) => client.ready);
  const client = ready.length > 0 && luck.chance(0.7) ? luck.of(ready) : undefined;
  if (client !== undefined) {
    client.ask(request);
    // Sometimes sends several requests at once, which must be accepted in order.
    const more = request.method === "chat.send" && luck.chance(0.4) ? 1 + luck.below(3) : 0;
    for (let at = 0; at < more; at += 1) {
      const again = { message: story.word("p"), idempotencyKey: story.word("run") };
      client.ask({ method: luck.of(["chat.send", "agent"]), params: { ...request.params, ...again } });
    }
  } else await guarded(story, process, () => ask(story, process, OWNER_TOKEN, request));
}
