// Implements `parley channels`: shows and tests the accounts, and manages the people who may write to them.

import type { PeerRow } from "../../contract/methods/channels.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { type Cli, EXIT, isGone } from "../cli.ts";
import { type Link, type Reply, withLink } from "../gateway-link.ts";
import { age, count, table } from "../layout.ts";
import { withSession } from "../session-name.ts";

const ERROR_CHARS_MAX = 100;

export async function listChannels(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("channels.status", {});
    if (!answer.ok) return cli.fail(answer);
    const rows = answer.value.channels.map(({ id, state, connectedSince, pending, failed, lastError }) => [
      id,
      state,
      connectedSince === undefined ? "" : age(connectedSince, cli.parts.world.clock.now()),
      pending ? String(pending) : "",
      failed ? String(failed) : "",
      head(lastError ?? "", ERROR_CHARS_MAX),
    ]);
    for (const line of table(["CHANNEL", "STATE", "SINCE", "WAITING", "FAILED", "ERROR"], rows))
      cli.line(line);
    if (!answer.value.channels.some(({ kind }) => kind === "channel")) {
      cli.note("No channel account is configured. Add one: npx parley-gateway channels add");
    }
    cli.document(answer.value);
    return EXIT.done;
  });
}

/** Tests the accounts of a channel (`telegram`), one account (`telegram:work`), or all of them. */
export async function testChannels(cli: Cli, [named]: readonly string[]): Promise<number> {
  return withLink(cli, async (link) => {
    const status = await link.request("channels.status", {});
    if (!status.ok) return cli.fail(status);
    const accounts = status.value.channels.filter(({ kind }) => kind === "channel").map(({ id }) => id);
    const wanted = accounts.filter((id) => named === undefined || id === named || id.startsWith(`${named}:`));
    if (wanted.length === 0) {
      const known = accounts.length === 0 ? "No account is configured." : `Accounts: ${accounts.join(", ")}.`;
      const error = named === undefined ? known : `Unknown account ${JSON.stringify(named)}. ${known}`;
      const hint = "Add one: npx parley-gateway channels add";
      return cli.fail({ code: "channel_unknown", error, ...(accounts.length === 0 ? { hint } : {}) });
    }
    const results = [];
    for (const id of wanted) {
      const [channel = "", accountId = ""] = id.split(":");
      const answer = await link.request("channels.test", { channel, accountId });
      if (!answer.ok && isGone(answer)) return cli.fail(answer);
      const text = answer.ok ? answer.value.name : answer.error;
      const mark = answer.ok ? cli.style("green", "✓") : cli.style("red", "✗");
      cli.line(`${mark} ${safeLine(id)}: ${safeLine(text)}`);
      results.push({ account: id, ok: answer.ok, text });
    }
    cli.document({ ok: results.every(({ ok }) => ok), accounts: results });
    return results.every(({ ok }) => ok) ? EXIT.done : EXIT.failed;
  });
}

export async function listPeers(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("channels.pair.list", {});
    if (!answer.ok) return cli.fail(answer);
    const nowMs = cli.parts.world.clock.now();
    const rows = answer.value.peers.map(({ channel, accountId, peerId, name, state, code, askedAt }) => [
      code ?? "",
      state,
      `${channel}:${accountId}`,
      peerId,
      name ?? "",
      `${age(askedAt, nowMs)} ago`,
    ]);
    if (rows.length === 0) cli.line(cli.style("dim", "(no pending codes, and nobody is approved)"));
    else for (const line of table(["CODE", "STATE", "ACCOUNT", "ID", "NAME", "ASKED"], rows)) cli.line(line);
    cli.document(answer.value);
    return EXIT.done;
  });
}

async function decide(
  cli: Cli,
  work: (link: Link) => Promise<Reply<{ readonly peer: PeerRow }>>,
  done: string,
): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await work(link);
    if (!answer.ok) return cli.fail(answer);
    const { channel, peerId, name } = answer.value.peer;
    cli.line(safeLine(`${channel}:${peerId}${name === undefined ? "" : ` (${name})`} ${done}.`));
    cli.document(answer.value);
    return EXIT.done;
  });
}

export function approvePeer(cli: Cli, [code = ""]: readonly string[]): Promise<number> {
  return decide(
    cli,
    (link) => link.request("channels.pair.approve", { code }),
    "is approved and can write now",
  );
}

export function rejectPeer(cli: Cli, [code = ""]: readonly string[]): Promise<number> {
  return decide(cli, (link) => link.request("channels.pair.reject", { code }), "was rejected");
}

/** Revokes the access of `<channel>:<id>`. */
export async function removePeer(
  cli: Cli,
  [named = ""]: readonly string[],
  { account }: { readonly account?: string },
): Promise<number> {
  const at = named.indexOf(":");
  if (at < 1 || at === named.length - 1) {
    return cli.fail(
      {
        code: "usage",
        error: "the person must be like telegram:123456; see npx parley-gateway channels pair",
      },
      EXIT.usage,
    );
  }
  const peer = { channel: named.slice(0, at), peerId: named.slice(at + 1) };
  const params = { ...peer, ...optional({ accountId: account }) };
  return decide(cli, (link) => link.request("channels.pair.remove", params), "no longer has access");
}

/** Formats a time limit in hours. Returns "" if there is no limit. */
function hours(ms: number): string {
  return ms === 0 ? "" : `${Math.round(ms / 36_000) / 100} h`;
}

export async function listBindings(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("bindings.list", {});
    if (!answer.ok) return cli.fail(answer);
    const nowMs = cli.parts.world.clock.now();
    const rows = answer.value.bindings.map(({ route, sessionKey, kind, usedAt, idleMs, maxAgeMs }) => [
      [route.channel, route.to, route.threadId ?? ""].join(" ").trim(),
      kind,
      sessionKey,
      `${age(usedAt, nowMs)} ago`,
      hours(idleMs),
      hours(maxAgeMs),
    ]);
    const names = ["CHAT", "KIND", "SESSION", "USED", "EXPIRES AFTER", "MAX AGE"];
    if (rows.length === 0) cli.line(cli.style("dim", "(no bindings)"));
    else for (const line of table(names, rows)) cli.line(line);
    cli.document(answer.value);
    return EXIT.done;
  });
}

export async function unbindSession(cli: Cli, [name = ""]: readonly string[]): Promise<number> {
  return withSession(cli, name, async (link, sessionKey) => {
    const answer = await link.request("bindings.unbind", { sessionKey });
    if (!answer.ok) return cli.fail(answer);
    const { ended } = answer.value;
    cli.line(
      safeLine(
        ended === 0
          ? `${sessionKey} has no bindings.`
          : `Removed ${count(ended, "binding")} of ${sessionKey}.`,
      ),
    );
    cli.document(answer.value);
    return EXIT.done;
  });
}
