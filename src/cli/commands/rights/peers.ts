// Implements `parley peer`: pairs with other gateways, and lists, changes and removes them.

import type { PeerEntry } from "../../../contract/methods/peers.ts";
import { optional } from "../../../core/optional.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { withLink } from "../../gateway-link.ts";
import { table } from "../../layout.ts";

interface PeerOptions {
  readonly name?: string;
  readonly code?: string;
  readonly address?: string;
  readonly expose?: readonly string[];
}

function names(ids: readonly string[]): string {
  return ids.length === 0 ? "none" : ids.join(", ");
}

function tell(cli: Cli, { name, exposes, offers }: PeerEntry): void {
  cli.line(safeLine(`It may write to: ${names(exposes)}. You may write to: ${names(offers)}.`));
  const [first] = offers;
  if (first === undefined) return;
  cli.line(safeLine(`Address of an agent there: peer:${name}/agent:${first}:main`));
}

export async function listPeers(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const list = await link.request("peers.list", {});
    if (!list.ok) return cli.fail(list);
    const { peers } = list.value;
    const rows = peers.map(({ name, url, state, exposes, offers, problem }) => [
      name,
      url ?? "-",
      problem === undefined ? state : "away",
      names(exposes),
      names(offers),
    ]);
    if (rows.length === 0)
      cli.line("No peers. Pair with another gateway: npx parley-gateway peer invite NAME, there");
    else for (const line of table(["NAME", "ADDRESS", "STATE", "IT SEES", "YOU SEE"], rows)) cli.line(line);
    for (const { name, problem } of peers)
      if (problem !== undefined) cli.line(safeLine(`${name}: ${problem}`));
    cli.document(list.value);
    return EXIT.done;
  });
}

export async function invitePeer(
  cli: Cli,
  [name = ""]: readonly string[],
  { address: url, expose }: PeerOptions,
): Promise<number> {
  return withLink(cli, async (link) => {
    const made = await link.request("peers.add", { name, ...optional({ url, agents: expose }) });
    if (!made.ok) return cli.fail(made);
    const { code = "", peer } = made.value;
    cli.line(safeLine(`Invited ${peer.name}. It may write to: ${names(peer.exposes)}.`));
    cli.line(
      `At the other gateway, within ten minutes: npx parley-gateway peer add URL --name NAME --code ${code}`,
    );
    cli.document(made.value);
    return EXIT.done;
  });
}

export async function addPeer(
  cli: Cli,
  [url = ""]: readonly string[],
  { name, code, expose }: PeerOptions,
): Promise<number> {
  if (name === undefined || code === undefined) {
    const error = "--name and --code are required";
    const hint = "The other gateway makes the code: npx parley-gateway peer invite NAME --expose AGENT";
    return cli.fail({ code: "usage", error, hint }, EXIT.usage);
  }
  return withLink(cli, async (link) => {
    const added = await link.request("peers.add", { url, name, code, ...optional({ agents: expose }) });
    if (!added.ok) return cli.fail(added);
    cli.line(safeLine(`Paired with ${added.value.peer.name}.`));
    tell(cli, added.value.peer);
    cli.document(added.value);
    return EXIT.done;
  });
}

export async function exposeToPeer(
  cli: Cli,
  [name = "", ...agents]: readonly string[],
  { address: url }: PeerOptions,
): Promise<number> {
  return withLink(cli, async (link) => {
    const given = agents.length === 0 && url !== undefined ? undefined : agents;
    const changed = await link.request("peers.update", { name, ...optional({ agents: given, url }) });
    if (!changed.ok) return cli.fail(changed);
    tell(cli, changed.value.peer);
    cli.document(changed.value);
    return EXIT.done;
  });
}

export async function removePeer(cli: Cli, [name = ""]: readonly string[]): Promise<number> {
  return withLink(cli, async (link) => {
    const removed = await link.request("peers.remove", { name });
    if (!removed.ok) return cli.fail(removed);
    cli.line(safeLine(`Removed the peer ${removed.value.name}.`));
    cli.document(removed.value);
    return EXIT.done;
  });
}
