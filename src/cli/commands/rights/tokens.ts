// Implements `parley tokens`: lists, creates, narrows and revokes access tokens.
// TC1: the text of a new token is the only line on standard output, so that a script can store it.

import type { AccessTokenEntry, ConfiguredTokenEntry } from "../../../contract/methods/tokens.ts";
import { optional } from "../../../core/optional.ts";
import { SCOPES } from "../../../core/rules/scopes.ts";
import type { TokenScope } from "../../../core/shapes/settings/settings.ts";
import { quoted } from "../../../core/text/cut.ts";
import { nearestNames } from "../../../core/text/nearest.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { type Link, type Reply, withLink } from "../../gateway-link.ts";
import { age, table } from "../../layout.ts";

const DAY_MS = 86_400_000;
const ID_SHOWN_CHARS = 8;
/** A shorter beginning of an id could be a name. */
const ID_START_CHARS_MIN = 4;
const LIST_HINT = "List ids and names: npx parley-gateway tokens list";

interface RightsOptions {
  readonly scope?: TokenScope;
  readonly sessions?: readonly string[];
}

const highest = (scopes: readonly TokenScope[]): string =>
  SCOPES.find((scope) => scopes.includes(scope)) ?? "none";

const sessionWords = (sessions: readonly string[] | undefined): string =>
  sessions === undefined ? "all" : sessions.length === 0 ? "none" : sessions.join(", ");

function tokenCells(token: AccessTokenEntry, nowMs: number): string[] {
  const { id, name, scopes, sessions, lastUsedAtMs, expiresAtMs } = token;
  return [
    id.slice(0, ID_SHOWN_CHARS),
    token.current ? `${name} (in use here)` : name,
    token.createdFrom === undefined ? "refused: its creator's token was removed" : highest(scopes),
    sessionWords(sessions),
    lastUsedAtMs === undefined ? "never" : `${age(lastUsedAtMs, nowMs)} ago`,
    `in ${Math.ceil((expiresAtMs - nowMs) / DAY_MS)} days`,
  ];
}

const configuredCells = ({ setting, role, scopes, sessions, current }: ConfiguredTokenEntry): string[] => [
  current ? `${setting} (in use here)` : setting,
  role === "node" ? "node" : highest(scopes),
  role === "node" ? "" : sessionWords(sessions),
];

export async function listTokens(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const list = await link.request("tokens.list", {});
    if (!list.ok) return cli.fail(list);
    const { ts, tokens, configured } = list.value;
    const rows = tokens.map((token) => tokenCells(token, ts));
    const names = ["ID", "NAME", "RIGHTS", "SESSIONS", "USED", "EXPIRES"];
    if (rows.length === 0) cli.line("No access tokens. Create one: npx parley-gateway tokens create");
    else for (const line of table(names, rows)) cli.line(line);
    const settings = table(["SETTING", "RIGHTS", "SESSIONS"], configured.map(configuredCells));
    if (configured.length > 0) for (const line of ["", ...settings]) cli.line(line);
    cli.document(list.value);
    return EXIT.done;
  });
}

export async function createToken(
  cli: Cli,
  [name = ""]: readonly string[],
  { scope, sessions, days }: RightsOptions & { readonly days: number },
): Promise<number> {
  const scopes = [scope ?? "operator.read"] as const;
  return withLink(cli, async (link) => {
    const made = await link.request("tokens.create", { name, scopes, days, ...optional({ sessions }) });
    if (!made.ok) return cli.fail(made);
    const { entry, token } = made.value;
    if (token === undefined) {
      const error = `The token ${quoted(entry.name, 80)} was created, but its text was lost on the way.`;
      const hint = `Revoke it, then create another: npx parley-gateway tokens revoke ${entry.id}`;
      return cli.fail({ code: "CLOSED", error, hint });
    }
    cli.line(safeLine(token));
    const rights = `${highest(entry.scopes)}, sessions: ${sessionWords(entry.sessions)}`;
    cli.note(safeLine(`This is the only time that the token is shown (${rights}; ${days} days).`));
    cli.document(made.value);
    return EXIT.done;
  });
}

/** Finds an access token by its id, the beginning of its id, or its name. */
async function tokenIn(link: Link, word: string): Promise<Reply<AccessTokenEntry>> {
  const list = await link.request("tokens.list", {});
  if (!list.ok) return list;
  const { tokens } = list.value;
  const wanted = word.trim();
  const isStart = (id: string): boolean =>
    wanted.length >= ID_START_CHARS_MIN && id.startsWith(wanted.toLowerCase());
  const exact = tokens.find(({ id }) => id === wanted);
  const found =
    exact === undefined ? tokens.filter(({ id, name }) => isStart(id) || name === wanted) : [exact];
  const [only, ...others] = found;
  if (only !== undefined && others.length === 0) return { ok: true, value: only };
  const named = quoted(word, 80);
  if (only !== undefined) {
    const ids = found.map(({ id }) => id).join(", ");
    const error = `${found.length} access tokens match ${named}. Give a whole id: ${ids}`;
    return { ok: false, code: "INVALID_REQUEST", error };
  }
  const names = tokens.map(({ name }) => name);
  const nearest = nearestNames(word, names, 1).map((name) => ` Did you mean ${JSON.stringify(name)}?`);
  const error = `No access token has the id or name ${named}.${nearest.join("")}`;
  return { ok: false, code: "NOT_FOUND", error, hint: LIST_HINT };
}

/** Calls `work` with the access token that the first argument names. */
async function withToken(
  cli: Cli,
  [word = ""]: readonly string[],
  work: (link: Link, token: AccessTokenEntry) => Promise<number>,
): Promise<number> {
  return withLink(cli, async (link) => {
    const found = await tokenIn(link, word);
    return found.ok ? work(link, found.value) : cli.fail(found);
  });
}

export async function narrowToken(
  cli: Cli,
  args: readonly string[],
  { scope, sessions }: RightsOptions,
): Promise<number> {
  if (scope === undefined && sessions === undefined) {
    const error = "Give the rights that the token keeps: --scope, --sessions or both";
    return cli.fail({ code: "usage", error }, EXIT.usage);
  }
  const rights = optional({ scopes: scope && [scope], sessions });
  return withToken(cli, args, async (link, { id }) => {
    const narrowed = await link.request("tokens.narrow", { id, ...rights });
    if (!narrowed.ok) return cli.fail(narrowed);
    const { name, scopes, sessions: kept } = narrowed.value.entry;
    const words = `${highest(scopes)}, sessions: ${sessionWords(kept)}`;
    cli.line(safeLine(`Narrowed ${JSON.stringify(name)} to ${words}.`));
    cli.document(narrowed.value);
    return EXIT.done;
  });
}

export async function revokeToken(cli: Cli, args: readonly string[]): Promise<number> {
  return withToken(cli, args, async (link, { id, name }) => {
    const revoked = await link.request("tokens.revoke", { id });
    if (!revoked.ok) return cli.fail(revoked);
    cli.line(safeLine(`Revoked ${JSON.stringify(name)}. Its connections are closed.`));
    cli.document(revoked.value);
    return EXIT.done;
  });
}
