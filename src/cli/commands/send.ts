// Implements `parley send`: sends a message to a session, or a text to a chat of a channel. With --wait,
// waits for the session's reply and prints it.

import { optional } from "../../core/optional.ts";
import { ok } from "../../core/shapes/errors.ts";
import { safeText } from "../../core/text/safe-text.ts";
import { within } from "../../world/pause.ts";
import { noteApprovals } from "../chat/approvals.ts";
import { type Cli, EXIT, isGone, type Trouble } from "../cli.ts";
import { type Link, withLink } from "../gateway-link.ts";
import { findSession, openNamed } from "../session-name.ts";

/** Time after the end of a run in which its final text arrives, unless the message had another recipient. */
const REPLY_LATE_MS = 3_000;

interface SendOptions {
  readonly message: string;
  readonly session?: string;
  /** Whether the session is opened although a similar name exists. */
  readonly new?: boolean;
  readonly channel?: string;
  readonly to?: string;
  readonly account?: string;
  readonly thread?: string;
  /** Maximum wait for the reply, in seconds. If absent, the command does not wait. */
  readonly wait?: number;
}

/** Waits for the event with the final text of a run. Resolves with "" if the run ended without text. */
function finalText(link: Link, runId: string): { text: Promise<string>; stop: () => void } {
  const { promise: text, resolve } = Promise.withResolvers<string>();
  const stop = link.client.on("chat", (event) => {
    if (event.runId !== runId || event.state === "delta" || event.stopReason === "delivered") return;
    resolve(event.message?.content.map((block) => block.text).join("\n") ?? "");
  });
  return { text, stop };
}

/** Reports that the connection was lost, with the run's id and the command that shows the result. */
export function connectionLost(
  cli: Cli,
  trouble: Trouble,
  message: { session: string; runId: string; sent: boolean },
): number {
  const { session, runId, sent } = message;
  const status = sent
    ? `The message was accepted as run ${runId}, which continues when the gateway runs again.`
    : `It is unknown whether the message was accepted as run ${runId}.`;
  const first = sent ? "Do not send it again." : "Check whether it arrived before you send it again.";
  return cli.fail({
    ...trouble,
    error: `The connection was lost: ${trouble.error}. ${status}`,
    hint: `${first} Follow it with: npx parley-gateway sessions history ${session}`,
    details: { runId },
  });
}

interface Sent {
  readonly session: string;
  readonly runId: string;
  /** Resolves with the final text of the run. */
  readonly text: Promise<string>;
}

async function waitForReply(cli: Cli, link: Link, seconds: number, sent: Sent): Promise<number> {
  const { session, runId, text } = sent;
  const waited = await link.request("agent.wait", { runId, timeoutMs: Math.round(seconds * 1000) });
  if (!waited.ok) {
    return isGone(waited) ? connectionLost(cli, waited, { session, runId, sent: true }) : cli.fail(waited);
  }
  const { status, runStatus, error, code } = waited.value;
  if (status === "timeout") {
    return cli.fail({
      code: "timeout",
      error: `No reply within ${seconds} s. The message was accepted and its run continues (${runStatus}).`,
      hint: `Do not send it again. Later: npx parley-gateway sessions history. The run's id is ${runId}.`,
      details: { runId, runStatus },
    });
  }
  if (status === "error") {
    return cli.fail({
      code: code ?? "run_failed",
      error: error ?? "The run failed.",
      details: { runId, runStatus },
    });
  }
  // A message that the program of a window has taken has no reply here.
  const reply = await within(cli.parts.world.clock, REPLY_LATE_MS, text);
  if (reply !== undefined) return printReply(cli, runId, reply);
  cli.say(`Delivered. The program of ${session} answers in its own window, not here.`);
  cli.document({ ok: true, runId, status: "delivered" });
  return EXIT.done;
}

function printReply(cli: Cli, runId: string, reply: string): number {
  cli.line(reply === "" ? cli.style("dim", "(no reply: the run ended without text)") : safeText(reply));
  cli.document({ ok: true, runId, status: "ok", reply });
  return EXIT.done;
}

/**
 * Checks which options are combined. If the combination is wrong, reports this and returns the exit code for
 * wrong usage.
 */
function misuse(cli: Cli, options: SendOptions): number | undefined {
  const { session, channel, to, account, thread, wait } = options;
  if (channel === undefined) {
    if (to !== undefined || account !== undefined || thread !== undefined)
      return cli.misuse("--to, --account and --thread need --channel");
    return session === undefined
      ? cli.misuse("no recipient: give --session <session>, or --channel and --to")
      : undefined;
  }
  if (to === undefined) return cli.misuse("--channel needs --to <chat>");
  if (options.new === true) return cli.misuse("--new cannot be used with --channel");
  return wait === undefined
    ? undefined
    : cli.misuse("--wait cannot be used with --channel: a channel has no reply");
}

/** Sends a text to a chat of a channel. No agent is involved. */
async function sendToChannel(cli: Cli, options: SendOptions): Promise<number> {
  const { message, session, channel, to = "", account: accountId, thread: threadId } = options;
  return withLink(cli, async (link) => {
    const named = session === undefined ? ok(undefined) : await findSession(link, session);
    if (!named.ok) return cli.fail(named);
    const sessionKey = named.value;
    const place = { to, ...optional({ channel, accountId, threadId, sessionKey }) };
    const sent = await link.request("send", { ...place, message });
    if (!sent.ok) return cli.fail(sent);
    const { messageId } = sent.value;
    cli.say(`Queued for ${channel} ${to} as delivery ${messageId}; see npx parley-gateway deliveries.`);
    cli.document({ ok: true, ...sent.value });
    return EXIT.done;
  });
}

export async function runSend(cli: Cli, options: SendOptions): Promise<number> {
  const { message } = options;
  const misused = misuse(cli, options);
  if (misused !== undefined) return misused;
  if (options.channel !== undefined) return sendToChannel(cli, options);
  const { session = "", wait = 0 } = options;
  return withLink(cli, async (link) => {
    const runId = cli.parts.world.ids.orderedUuid();
    // Subscribe before sending the message, so that the event of a fast run is not missed.
    const { text, stop } = finalText(link, runId);
    let stopNotes = (): void => {};
    try {
      const opened = await openNamed(cli, link, session, { isNew: options.new === true });
      if (!opened.ok) return cli.fail(opened);
      const sessionKey = opened.value;
      if (wait > 0) stopNotes = noteApprovals(cli, link, sessionKey);
      const params = { sessionKey, message, idempotencyKey: runId };
      const sent = await link.request("chat.send", params);
      if (!sent.ok) {
        return isGone(sent) ? connectionLost(cli, sent, { session, runId, sent: false }) : cli.fail(sent);
      }
      const { reply } = sent.value;
      if (reply !== undefined) return printReply(cli, runId, reply);
      if (wait > 0) return await waitForReply(cli, link, wait, { session, runId, text });
      cli.say(`Accepted as run ${runId}.`);
      cli.document({ ok: true, runId, status: "accepted" });
      return EXIT.done;
    } finally {
      stop();
      stopNotes();
    }
  });
}
