// Access to the gateway and between sessions: devices, tokens, permissions, other gateways.
// TC1: the text of a new token is the only line on standard output, so that a script can store it.

import type { AccessTokenEntry } from "../../contract/methods/tokens.ts";
import type { PayloadOf } from "../../contract/methods.ts";
import { isObject, jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { completeAnswer, describeField, readTyped } from "../../core/rules/approval/form.ts";
import { SCOPES } from "../../core/rules/scopes.ts";
import { fail, ok } from "../../core/shapes/errors.ts";
import { EXPLAINED } from "../../core/shapes/explanation.ts";
import { SINKS } from "../../core/shapes/labels.ts";
import { lastingWords, PERMISSION_SCOPES, type PermissionScope } from "../../core/shapes/permission.ts";
import type { TokenScope } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import type { Link, Reply } from "../gateway-link.ts";
import { wholeText } from "../layout.ts";
import { onlyMatch } from "../only-match.ts";
import { openPrompter, refusal } from "../prompter.ts";
import { amount, asks, type Commands, choice, flag, linked, option, withDefault } from "../row.ts";
import { findOrName } from "../session-name.ts";
import { isSink, labelLines } from "./labels.ts";

const DAY_MS = 86_400_000;
const ACCESS_WIDTH = 8;
const DEVICE_ID_CHARS = 12;
const TOKEN_ID_CHARS = 8;
/** A shorter beginning of an id could be a name. */
const ID_START_CHARS_MIN = 4;

const daysLeft = (untilMs: number, nowMs: number): string =>
  `in ${Math.ceil((untilMs - nowMs) / DAY_MS)} days`;
const wrong = (error: string, hint: string): Reply<never> => ({ ok: false, code: "usage", error, hint });

export const DEVICES: Commands = {
  list: asks({
    summary: "List devices and their tokens",
    isDefault: true,
    ask: (link) => link.request("device.token.list", {}),
    print: (cli, { ts, devices }) =>
      cli.table(
        devices,
        {
          ID: ({ deviceId }) => deviceId.slice(0, DEVICE_ID_CHARS),
          NAME: ({ displayName }) => displayName,
          PLATFORM: ({ platform }) => platform,
          ROLE: ({ role }) => role,
          CONNECTED: ({ lastUsedAtMs }) => cli.ago(lastUsedAtMs, ts),
          EXPIRES: ({ expiresAtMs }) => daysLeft(expiresAtMs, ts),
        },
        "No device has a device token.",
      ),
  }),
  revoke: asks({
    summary: "Revoke the tokens of a device; it can then connect only with the gateway's token",
    args: { "<id>": "Id of the device, or its beginning" },
    async find(link, { id }) {
      const list = await link.request("device.token.list", {});
      if (!list.ok) return list;
      const start = id.trim().toLowerCase();
      const ids = list.value.devices.map((row) => row.deviceId).filter((one) => one.startsWith(start));
      const [deviceId, ...others] = new Set(ids);
      if (start !== "" && deviceId !== undefined && others.length === 0) return ok(deviceId);
      const named = quoted(id, 80);
      return wrong(
        ids.length === 0
          ? `no device with a token has the id ${named}`
          : `several device ids begin with ${named}`,
        "List the ids: npx parley-gateway devices list",
      );
    },
    ask: (link, _, deviceId) => link.request("device.token.revoke", { deviceId }),
    print: (cli, _, deviceId) =>
      cli.say(`Revoked the tokens of device ${deviceId.slice(0, DEVICE_ID_CHARS)}.`),
  }),
};

const highest = (scopes: readonly TokenScope[]): string =>
  SCOPES.find((scope) => scopes.includes(scope)) ?? "none";

const sessionWords = (sessions: readonly string[] | undefined): string =>
  sessions === undefined ? "all" : sessions.length === 0 ? "none" : sessions.join(", ");

const rightsWords = ({ scopes, sessions }: Pick<AccessTokenEntry, "scopes" | "sessions">): string =>
  `${highest(scopes)}, sessions: ${sessionWords(sessions)}`;

/** Finds an access token by its id, the beginning of its id, or its name. */
async function findToken(link: Link, { token: word }: { readonly token: string }) {
  const list = await link.request("tokens.list", {});
  if (!list.ok) return list;
  const { tokens } = list.value;
  const wanted = word.trim();
  const isStart = (id: string): boolean =>
    wanted.length >= ID_START_CHARS_MIN && id.startsWith(wanted.toLowerCase());
  const exact = tokens.filter(({ id }) => id === wanted);
  const matches = exact.length > 0 ? exact : tokens.filter(({ id, name }) => isStart(id) || name === wanted);
  const several = (ids: string) =>
    `${matches.length} access tokens match ${quoted(word, 80)}. Give a whole id: ${ids}`;
  return onlyMatch(word, matches, { kind: "access token", list: "tokens list", all: tokens, several });
}

const TOKEN = { "<token>": "Id, its beginning, or name of the token" };
const SESSIONS = "<pattern...>";

export const TOKENS: Commands = {
  list: asks({
    summary: "List access tokens and their rights",
    isDefault: true,
    ask: (link) => link.request("tokens.list", {}),
    print(cli, { ts, tokens, configured }) {
      cli.table(
        tokens,
        {
          ID: ({ id }) => id.slice(0, TOKEN_ID_CHARS),
          NAME: ({ name, current }) => (current ? `${name} (in use here)` : name),
          RIGHTS: ({ createdFrom, scopes }) =>
            createdFrom === undefined ? "refused: its creator's token was removed" : highest(scopes),
          SESSIONS: ({ sessions }) => sessionWords(sessions),
          USED: ({ lastUsedAtMs }) => (lastUsedAtMs === undefined ? "never" : cli.ago(lastUsedAtMs, ts)),
          EXPIRES: ({ expiresAtMs }) => daysLeft(expiresAtMs, ts),
        },
        "No access tokens. Create one: npx parley-gateway tokens create",
      );
      if (configured.length > 0) cli.line();
      cli.table(configured, {
        SETTING: ({ setting, current }) => (current ? `${setting} (in use here)` : setting),
        RIGHTS: ({ role, scopes }) => (role === "node" ? "node" : highest(scopes)),
        SESSIONS: ({ role, sessions }) => (role === "node" ? "" : sessionWords(sessions)),
      });
    },
  }),
  create: linked({
    summary: "Create an access token and print it; it cannot be printed again",
    args: { "<name>": "Person or program that uses the token" },
    options: {
      scope: withDefault(
        choice("<scope>", "Give this scope, which includes the smaller ones", SCOPES),
        "operator.read",
      ),
      sessions: option(SESSIONS, 'Cover only these sessions, like "agent:research:*"'),
      days: withDefault(amount("<n>", "Expire after this many days", 1), 90),
    },
    async work(cli, link, { name, scope, sessions, days }) {
      const made = await link.request("tokens.create", { name, scopes: [scope], days, sessions });
      if (!made.ok) return cli.fail(made);
      const { entry, token } = made.value;
      if (token === undefined) {
        const error = `The token ${quoted(entry.name, 80)} was created, but its text was lost on the way.`;
        const hint = `Revoke it, then create another: npx parley-gateway tokens revoke ${entry.id}`;
        return cli.fail({ code: "CLOSED", error, hint });
      }
      cli.say(token);
      const rights = `${rightsWords(entry)}; ${days} days`;
      cli.note(safeLine(`This is the only time that the token is shown (${rights}).`));
      cli.document(made.value);
      return EXIT.done;
    },
  }),
  narrow: asks({
    summary: "Take rights from an access token; they cannot be given back",
    args: TOKEN,
    options: {
      scope: choice("<scope>", "Keep only this scope", SCOPES),
      sessions: option(SESSIONS, "Keep only these sessions"),
    },
    misuse: ({ scope, sessions }) =>
      scope === undefined && sessions === undefined
        ? "Give the rights that the token keeps: --scope, --sessions or both"
        : undefined,
    find: findToken,
    ask: (link, { scope, sessions }, { id }) =>
      link.request("tokens.narrow", { id, scopes: scope && [scope], sessions }),
    print: (cli, { entry }) => cli.say(`Narrowed ${JSON.stringify(entry.name)} to ${rightsWords(entry)}.`),
  }),
  revoke: asks({
    summary: "Revoke an access token, and close the connections that it opened",
    args: TOKEN,
    find: findToken,
    ask: (link, _, { id }) => link.request("tokens.revoke", { id }),
    print: (cli, _, { name }) => cli.say(`Revoked ${JSON.stringify(name)}. Its connections are closed.`),
  }),
};

async function answerRequest(
  cli: Cli,
  link: Link,
  wanted: {
    id: string;
    decision: "allow" | "deny";
    scope?: PermissionScope;
    content?: Record<string, unknown>;
  },
): Promise<number> {
  const answered = await link.request("permissions.answer", wanted);
  if (!answered.ok) return cli.fail(answered);
  const { ruleId } = answered.value;
  const done = wanted.decision === "allow" ? "Allowed." : "Denied.";
  const undo = `Allowed from now on. Undo with: npx parley-gateway permissions forget ${ruleId}`;
  cli.line(ruleId === undefined ? done : undo);
  cli.document(answered.value);
  return EXIT.done;
}

/** Reads the answer to a form: from the option, else asks for each field. Fails with the exit code. */
async function readContent(cli: Cli, link: Link, id: string, json: string | undefined) {
  const wrong = (error: string, hint: string) => fail("invalid_argument", error, { hint });
  if (json !== undefined) {
    const given = jsonOf(json);
    return isObject(given)
      ? ok(given)
      : wrong("--content is no JSON object", 'Give for example \'{"name": "Ann"}\'.');
  }
  const listed = await link.request("permissions.list", {});
  if (!listed.ok) return listed;
  const [question, ...more] = listed.value.permissions.filter((one) => one.id.startsWith(id));
  const { form, title } = question ?? {};
  if (form === undefined || form.fields.length === 0 || more.length > 0) return ok(undefined);
  if (!cli.parts.isTTY || cli.options.json)
    return wrong("it has a form, and no terminal can ask for its fields", "Give its answer with --content.");
  cli.note(wholeText(title ?? "", "  "));
  const prompter = await openPrompter(cli.parts);
  const content: Record<string, unknown> = {};
  for (const field of form.fields) {
    const valueIn = (text: string) => optional({ [field.name]: readTyped(field, text) });
    const check = (text: string) => {
      const checked = completeAnswer([field], valueIn(text));
      return checked.ok ? undefined : checked.error;
    };
    const answer = await prompter.ask(safeLine(describeField(field)), { secret: false, check });
    if (!answer.ok) return answer;
    Object.assign(content, valueIn(answer.value));
  }
  return ok(content);
}

/** Shows the command and asks whether to allow it for longer. Returns the exit code if it is not allowed. */
async function refusedScope(
  cli: Cli,
  link: Link,
  id: string,
  scope: Exclude<PermissionScope, "once">,
): Promise<number | undefined> {
  const listed = await link.request("permissions.list", {});
  if (!listed.ok) return cli.fail(listed, EXIT.usage);
  const [question, ...more] = listed.value.permissions.filter((one) => one.id.startsWith(id));
  // The gateway refuses such an id with the reason.
  if (question === undefined || more.length > 0) return undefined;
  cli.note(`${safeLine(lastingWords(question, scope))}\n  ${wholeText(question.title, "  ")}`);
  return refusal(cli, "Allow it from now on?", `The scope ${scope}`, "Nothing was allowed.");
}

export const PERMISSIONS: Commands = {
  list: asks({
    summary: "List pending permission requests",
    isDefault: true,
    ask: (link) => link.request("permissions.list", {}),
    print(cli, { permissions, instructions }) {
      if (permissions.length + instructions.length === 0) cli.line(cli.style("dim", "(no pending requests)"));
      for (const { id, sessionKey, title, detail, expiresAt } of permissions) {
        const seconds = Math.max(0, Math.round((expiresAt - cli.parts.world.clock.now()) / 1000));
        cli.line(`${safeLine(id)}  ${safeLine(sessionKey)}  ${wholeText(title, "  ")}  (${seconds} s left)`);
        if (detail !== undefined) cli.line(`  ${wholeText(detail, "  ")}`);
      }
      for (const { id, path, kind, source, sessionKey, diff } of instructions) {
        cli.say(`${id}  ${path}  (${kind} by ${sessionKey}, outside content: ${source})`);
        for (const line of diff.split("\n")) cli.say(`  ${line}`);
      }
    },
  }),
  allow: linked({
    summary: "Allow a request",
    args: { "<id>": "" },
    options: {
      scope: withDefault(
        choice("<scope>", "Allow once, in this chain or session, or always", PERMISSION_SCOPES),
        "once",
      ),
      yes: flag("Allow for longer than once without asking"),
      content: option("<json>", "Answer a form with an object, instead of on the terminal"),
    },
    async work(cli, link, { id, scope, yes, content: json }) {
      const refused = scope === "once" || yes === true ? undefined : await refusedScope(cli, link, id, scope);
      if (refused !== undefined) return refused;
      const content = await readContent(cli, link, id, json);
      if (!content.ok) return cli.fail(content, EXIT.usage);
      return answerRequest(cli, link, {
        id,
        decision: "allow",
        scope,
        ...optional({ content: content.value }),
      });
    },
  }),
  deny: linked({
    summary: "Deny a request",
    args: { "<id>": "" },
    work: (cli, link, { id }) => answerRequest(cli, link, { id, decision: "deny" }),
  }),
  rules: asks({
    summary: "List the commands that are allowed for longer",
    ask: (link) => link.request("permissions.rules", {}),
    print(cli, { rules }) {
      if (rules.length === 0) cli.line(cli.style("dim", "(no commands)"));
      for (const { id, agentId, sessionKey, chainId, scope, command, folder } of rules) {
        const where = { always: `agent ${agentId}`, session: sessionKey, chain: `chain ${chainId}` }[scope];
        cli.line(
          `${safeLine(id)}  ${safeLine(where)}  ${wholeText(command, "  ")}  (in ${safeLine(folder)})`,
        );
      }
    },
  }),
  forget: asks({
    summary: "Ask about an allowed command again",
    args: { "<id>": "Id that npx parley-gateway permissions rules prints" },
    ask: (link, { id }) => link.request("permissions.forget", { id }),
    print: (cli) => cli.line("Forgotten. The next call of the command asks again."),
  }),
};

function explanationLines(cli: Cli, { viewer, target, answers }: PayloadOf<"access.explain">): void {
  const gone = " (this session does not exist yet; the answers apply once it is created)";
  cli.say(`${viewer.key} -> ${target.key}${target.exists ? "" : gone}`);
  const before = new Map<string, string>();
  for (const { access, allowed, rule, settings, checks } of answers) {
    // The other checks that failed, and the settings that the access would need.
    const more = [
      ...checks
        .filter((check) => !check.allowed)
        .slice(1)
        .map((check) => `also: ${check.rule}`),
      ...settings.filter((setting) => !rule.includes(setting)).map((setting) => `would need ${setting}`),
    ];
    const whole = JSON.stringify([allowed, rule, more]);
    const same = before.get(whole);
    if (same === undefined) before.set(whole, access);
    const verdict = allowed ? cli.style("green", "yes") : cli.style("red", "no ");
    const text = same === undefined ? rule : `same as for ${same}`;
    cli.line(`${safeLine(access).padEnd(ACCESS_WIDTH)}${verdict}  ${safeLine(text)}`);
    if (same !== undefined) continue;
    for (const line of more) cli.line(cli.style("dim", `${" ".repeat(ACCESS_WIDTH + 5)}${safeLine(line)}`));
  }
}

export const MAY = asks({
  summary: "Explain whether a session may access another one, or let a text leave, and by which rule",
  args: {
    "<viewer>": "Session that wants access",
    "<target>": `Session to access, or the kind of a call: ${SINKS.join(", ")}`,
    "[destination]": "With the kind of a call: an address, a chat, a tool, an agent or a session",
  },
  options: { access: choice("<kind>", "Check only this kind of access", EXPLAINED) },
  async find(link, input, cli) {
    const viewer = await findOrName(cli, link, input.viewer, {});
    if (!viewer.ok) return viewer;
    if (input.destination !== undefined) {
      if (isSink(input.target)) return ok({ viewer: viewer.value.key, target: input.target });
      return wrong(`${quoted(input.target, 40)} is no kind of call`, `Give one of: ${SINKS.join(", ")}.`);
    }
    const target = await findOrName(cli, link, input.target, {});
    return target.ok ? ok({ viewer: viewer.value.key, target: target.value.key }) : target;
  },
  ask: (
    link,
    { access, destination: to },
    { viewer, target },
  ): Promise<Reply<PayloadOf<"access.explain"> | PayloadOf<"labels.explain">>> =>
    to !== undefined && isSink(target)
      ? link.request("labels.explain", { sessionKey: viewer, sink: target, to })
      : link.request("access.explain", { viewer, target, access }),
  print: (cli, answer) => ("labels" in answer ? labelLines(cli, answer) : explanationLines(cli, answer)),
});
