// Implements `parley status`: shows on one screen what the gateway is, what it does and what needs a person.

import type { PayloadOf } from "../../../contract/methods.ts";
import { GROUP_TITLES } from "../../../core/rules/attention/groups.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { type Link, withLink } from "../../gateway-link.ts";
import { age, count, excerpt } from "../../layout.ts";

const SHOWN_MAX = 5;
const SUMMARY_CHARS = 60;
const NAME_WIDTH = 10;

interface Facts {
  readonly status: PayloadOf<"status">;
  readonly sessions: PayloadOf<"sessions.list">;
  readonly runs: PayloadOf<"runs.list">;
  readonly attention: PayloadOf<"attention.list">;
}

/** Returns the texts of a list, at most five, and how many more there are. */
function few(all: readonly string[], total = all.length): string[] {
  const shown = all.slice(0, SHOWN_MAX);
  return total > shown.length ? [...shown, `and ${total - shown.length} more`] : shown;
}

function gatewayLines({ status }: Facts, url: string, nowMs: number): string[] {
  const { ok, version, uptimeMs, config, processes } = status;
  const up = age(nowMs - uptimeMs, nowMs);
  const alive = processes?.filter((one) => one.alive) ?? [];
  const same = new Set(alive.map((one) => one.configRevision)).size <= 1;
  const words = same ? "" : ", with different settings: npx parley-gateway doctor";
  const shared =
    processes === undefined
      ? []
      : [`${count(processes.length, "process", "processes")} share the store${words}`];
  const newer = config?.differs === true ? [`a restart is needed for: ${config.restart.join(", ")}`] : [];
  const broken =
    config?.ok === false ? ["the configuration file is invalid: npx parley-gateway config check"] : [];
  const state = ok ? "accepts work" : "accepts no work";
  return [`${url}, version ${version}, up ${up}, ${state}`, ...shared, ...newer, ...broken];
}

function runLines({ runs, truncated, ts }: Facts["runs"]): string[] {
  const words = runs.map(
    ({ sessionKey, label, state, since, summary }) =>
      `${label ?? sessionKey}, ${state} for ${age(since, ts)}: ${excerpt(summary, SUMMARY_CHARS)}`,
  );
  return few(words, truncated ? runs.length + 1 : runs.length);
}

function attentionLines({ groups, ts }: Facts["attention"]): string[] {
  const { items = [], count: total = 0 } = groups.find(({ group }) => group === "needs_you") ?? {};
  if (total === 0) return ["nothing"];
  const words = items.map(
    ({ kind, label, sessionKey, title, since, summary }) =>
      `${kind} ${label ?? sessionKey ?? title ?? ""}, ${age(since, ts)}: ${excerpt(summary, SUMMARY_CHARS)}`,
  );
  return [...few(words, total), "Settle them: npx parley-gateway inbox"];
}

function rowsOf(facts: Facts, url: string, nowMs: number): [name: string, lines: string[]][] {
  const { status, sessions } = facts;
  const { store, agents, models, deliveries, defaultAgentId, lanes } = status;
  const { running = 0, failed = 0 } = sessions.counts ?? {};
  const queue =
    lanes === undefined ? [] : [`${lanes.running} running, ${lanes.waiting} waiting, ${lanes.queued} queued`];
  const outbox =
    deliveries === undefined ? [] : [`${deliveries.pending} pending, ${deliveries.failed} failed`];
  const used = Object.entries(status.channels).filter(([, { configured }]) => configured);
  const words = used.map(
    ([name, { ok }]) => `${name} ${ok ? "works" : "does not work: npx parley-gateway channels"}`,
  );
  return [
    ["Gateway", gatewayLines(facts, url, nowMs)],
    ["Store", [`${store.kind}, ${store.reason ?? "works"}`]],
    ["Agents", [`${count(agents, "agent")} (default: ${defaultAgentId}), ${count(models, "model")}`]],
    ["Sessions", [`${running} at work, ${failed} failed`]],
    ["Runs", queue.length + facts.runs.runs.length === 0 ? ["none"] : [...queue, ...runLines(facts.runs)]],
    ["Channels", words.length === 0 ? ["none"] : words],
    ...(outbox.length === 0 ? [] : [["Outbox", outbox] as [string, string[]]]),
    [GROUP_TITLES.needs_you, attentionLines(facts.attention)],
  ];
}

async function show(cli: Cli, link: Link): Promise<number> {
  const status = await link.request("status", {});
  if (!status.ok) return cli.fail(status);
  const sessions = await link.request("sessions.list", { limit: 1, includeCounts: true });
  if (!sessions.ok) return cli.fail(sessions);
  const runs = await link.request("runs.list", { limit: SHOWN_MAX });
  if (!runs.ok) return cli.fail(runs);
  const attention = await link.request("attention.list", { limit: SHOWN_MAX });
  if (!attention.ok) return cli.fail(attention);
  const facts = {
    status: status.value,
    sessions: sessions.value,
    runs: runs.value,
    attention: attention.value,
  };
  const nowMs = cli.parts.world.clock.now();
  for (const [name, lines] of rowsOf(facts, link.url, nowMs)) {
    for (const [at, line] of lines.entries()) {
      const head = cli.style("bold", (at === 0 ? name : "").padEnd(NAME_WIDTH));
      cli.line(`${head} ${safeLine(line)}`);
    }
  }
  cli.document({
    ok: status.value.ok,
    url: link.url,
    status: status.value,
    counts: sessions.value.counts,
    runs: runs.value.runs,
    attention: attention.value.groups,
  });
  return status.value.ok ? EXIT.done : EXIT.failed;
}

export function showStatus(cli: Cli): Promise<number> {
  return withLink(cli, (link) => show(cli, link));
}
