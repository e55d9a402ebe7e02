// Owns `parley send`: one message to one session, and with --wait the reply to it.

import { safeText } from "../../core/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import { exitFor, type Link, withLink } from "../link.ts";

interface SendOptions {
  readonly session: string;
  /** Seconds; absent: don't wait. */
  readonly wait?: number;
}

interface WaitAnswer {
  readonly status: "ok" | "error" | "timeout";
  readonly runStatus: string;
  readonly error?: string;
  readonly code?: string;
}

/** The end of a run as it is told on this connection: its text, "" when it said nothing. */
function hearEnd(link: Link, runId: string): { text: Promise<string>; stop: () => void } {
  const { promise: text, resolve } = Promise.withResolvers<string>();
  const stop = link.client.on("chat", (event) => {
    if (event.runId !== runId || event.state === "delta" || event.stopReason === "delivered") return;
    resolve(event.message?.content.map((block) => block.text).join("\n") ?? "");
  });
  return { text, stop };
}

async function waitForReply(
  cli: Cli,
  link: Link,
  runId: string,
  seconds: number,
  text: Promise<string>,
): Promise<number> {
  const waited = await link.call<WaitAnswer>("agent.wait", { runId, timeoutMs: Math.round(seconds * 1000) });
  if (!waited.ok) return cli.fail(waited, exitFor(waited));
  const { status, runStatus, error, code } = waited.value;
  if (status === "timeout") {
    return cli.fail({
      code: "timeout",
      error: `No reply within ${seconds} s. The message was accepted and its run goes on (${runStatus}).`,
      hint: `Do not send it again; see "parley sessions history" later. The run is ${runId}.`,
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
  const reply = await text;
  cli.line(reply === "" ? cli.style("dim", "(no reply: the run ended without a text)") : safeText(reply));
  cli.document({ ok: true, runId, status, reply });
  return EXIT.done;
}

export async function runSend(cli: Cli, args: readonly string[], options: SendOptions): Promise<number> {
  const [message = ""] = args;
  return withLink(cli, async (link) => {
    const runId = cli.parts.world.ids.uuid();
    // Heard from before the message is sent, so that no end is too quick.
    const { text, stop } = hearEnd(link, runId);
    try {
      const sent = await link.call("chat.send", {
        sessionKey: options.session,
        message,
        idempotencyKey: runId,
      });
      if (!sent.ok) return cli.fail(sent, exitFor(sent));
      if (options.wait !== undefined && options.wait > 0) {
        return await waitForReply(cli, link, runId, options.wait, text);
      }
      cli.line(`Accepted as run ${runId}.`);
      cli.document({ ok: true, runId, status: "accepted" });
      return EXIT.done;
    } finally {
      stop();
    }
  });
}
