// Maps bindings, which choose the agent of a channel, an account or a group, to the agents of the mapped
// channels. A binding never admits anybody: a group without an entry gets none.

import type { Tree } from "../../../config/source.ts";
import { fieldsOf, isObject, listOf } from "../../../core/json.ts";
import { textIn } from "../fields.ts";
import { agentIdOf } from "../keys.ts";

const BINDINGS_MAX = 2_000;

interface Binding {
  readonly where: string;
  readonly agentId: string;
  readonly channel: Tree;
  /** `*`: every account. */
  readonly accountId: string;
  readonly group?: string;
}

/** Returns a binding that can be expressed here, or the reason why not. */
function readBinding(value: unknown, where: string, channels: Tree): Binding | string {
  const { agentId: agent, match, type = "route" } = fieldsOf(value);
  const { channel: name, accountId, peer, ...more } = fieldsOf(match);
  const agentId = agentIdOf(textIn(agent, 200) ?? "");
  if (type !== "route" || agentId === undefined) return "is not a route to an agent";
  const channel = channels[textIn(name, 64)?.toLowerCase() ?? ""];
  if (!isObject(channel)) return "names a channel that is not imported";
  if (Object.keys(more).length > 0) return `matches by ${Object.keys(more).join(", ").slice(0, 80)}`;
  const whole = { where, agentId, channel, accountId: textIn(accountId, 128) ?? "default" };
  if (peer === undefined) return whole;
  const { kind, id } = fieldsOf(peer);
  const group = textIn(typeof id === "number" ? String(id) : id, 200);
  if ((kind !== "group" && kind !== "channel") || group === undefined) return "matches one person";
  return group === "*" ? "matches every group" : { ...whole, group };
}

/** Returns the accounts of a channel to which a binding applies: the channel itself is the default one. */
function accountsOf({ channel, accountId }: Binding): Tree[] {
  const others = Object.entries(fieldsOf(channel.accounts)).filter(([id]) => [id, "*"].includes(accountId));
  const own = accountId === "default" || accountId === "*" ? [channel] : [];
  return [...own, ...others.map(([, account]) => fieldsOf(account))];
}

function bindGroup(account: Tree, group: string, agentId: string): boolean {
  const groups = fieldsOf(account.groups);
  const entry = groups[group] ?? groups["*"] ?? (account.groupPolicy === "open" ? {} : undefined);
  if (!isObject(entry)) return false;
  account.groups = { ...groups, [group]: { ...entry, agentId: entry.agentId ?? agentId } };
  return true;
}

function apply(binding: Binding): string | undefined {
  const { group, agentId } = binding;
  const accounts = accountsOf(binding);
  if (accounts.length === 0) return "names an account that is not imported";
  if (group !== undefined) {
    const bound = accounts.filter((account) => bindGroup(account, group, agentId));
    return bound.length > 0 ? undefined : "names a group that has no entry in groups";
  }
  for (const account of accounts) account.agentId ??= agentId;
  return undefined;
}

/** Adds the agents of the bindings to the mapped channels. Of several that match, the first one counts. */
export function bindAgents(bindings: unknown, channels: Tree, defaultAgentId: string, notes: string[]): void {
  const known: Binding[] = [];
  const skip = (where: string, why: string): number =>
    notes.push(`${where} ${why}, so it is skipped: the agent of the account answers`);
  for (const [index, value] of listOf(bindings).slice(0, BINDINGS_MAX).entries()) {
    const where = `bindings[${index}]`;
    const binding = readBinding(value, where, channels);
    if (typeof binding === "string") skip(where, binding);
    else known.push(binding);
  }
  // A binding of one account precedes one of all accounts.
  const wide = ({ accountId }: Binding): number => (accountId === "*" ? 1 : 0);
  for (const binding of known.sort((a, b) => wide(a) - wide(b))) {
    const why = apply(binding);
    if (why !== undefined) skip(binding.where, why);
  }
  // Accounts inherit the agent of their channel here, but not in the source.
  for (const channel of Object.values(channels)) {
    if (!isObject(channel) || channel.agentId === undefined) continue;
    for (const account of Object.values(fieldsOf(channel.accounts))) {
      if (isObject(account)) account.agentId ??= defaultAgentId;
    }
  }
}
