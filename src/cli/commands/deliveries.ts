// Implements `parley deliveries`: lists, retries and dismisses deliveries of the outbox.

import type { DeliveryRow } from "../../contract/methods/deliveries.ts";
import { optional } from "../../core/optional.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import { withLink } from "../gateway-link.ts";
import { age, excerpt, table } from "../layout.ts";

const TEXT_CHARS_MAX = 60;
const ERROR_CHARS_MAX = 120;

/** Formats a route, for example `telegram -1001`. Appends account and thread if they are not the default. */
function routeText({ channel, to, accountId = "default", threadId }: DeliveryRow["route"]): string {
  const from = accountId === "default" ? channel : `${channel}:${accountId}`;
  return threadId === undefined ? `${from} ${to}` : `${from} ${to} thread ${threadId}`;
}

interface ListOptions {
  readonly state?: DeliveryRow["state"];
  readonly limit: number;
}

export async function listDeliveries(
  cli: Cli,
  _args: readonly string[],
  options: ListOptions,
): Promise<number> {
  const { state, limit } = options;
  return withLink(cli, async (link) => {
    const page = await link.request("deliveries.list", { limit, ...optional({ state }) });
    if (!page.ok) return cli.fail(page);
    const nowMs = cli.parts.world.clock.now();
    const rows = page.value.deliveries.map((row) => [
      row.id,
      row.code === undefined ? row.state : `${row.state} (${row.code})`,
      `${age(row.createdAt, nowMs)} ago`,
      String(row.attempts),
      routeText(row.route),
      excerpt(row.text, TEXT_CHARS_MAX),
      row.state === "sent" ? "" : excerpt(row.error ?? "", ERROR_CHARS_MAX),
    ]);
    if (rows.length === 0) cli.line("The outbox is empty.");
    else {
      const names = ["ID", "STATE", "CREATED", "ATTEMPTS", "TO", "TEXT", "ERROR"];
      for (const line of table(names, rows)) cli.line(line);
    }
    cli.document(page.value);
    return EXIT.done;
  });
}

async function settle(
  cli: Cli,
  method: "deliveries.retry" | "deliveries.dismiss",
  id: string,
  done: string,
): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request(method, { id });
    if (!answer.ok) return cli.fail(answer);
    cli.line(safeLine(`${id} ${done}`));
    cli.document(answer.value);
    return EXIT.done;
  });
}

export async function retryDelivery(cli: Cli, args: readonly string[]): Promise<number> {
  return settle(cli, "deliveries.retry", args[0] ?? "", "will be retried.");
}

export async function dismissDelivery(cli: Cli, args: readonly string[]): Promise<number> {
  return settle(cli, "deliveries.dismiss", args[0] ?? "", "is dismissed.");
}
