// Owns the settings as they are shown: whole, but for what may be a secret: only its presence is told.
// G5: a secret is never shown.

import type { Settings } from "../core/settings.ts";
import { describeHooks } from "./incoming-hooks.ts";
import { describeMcp } from "./mcp.ts";

/** A program that is an agent gets keys in its variables, and may get them in its arguments. */
function describeAgent({ runtime, ...agent }: Settings["agents"][number]): Record<string, unknown> {
  if (runtime === undefined) return agent;
  const { command, env, ...rest } = runtime;
  const named = Object.fromEntries(Object.keys(env).map((name) => [name, "(set)"]));
  return { ...agent, runtime: { ...rest, command: command[0], args: `(${command.length - 1})`, env: named } };
}

/** Keys of accounts whose values are secrets. */
const SECRETS_OF_ACCOUNTS = new Set(["botToken", "token", "accessToken", "appSecret", "verifyToken"]);

/** An account without its secrets; of a program's arguments only how many there are. */
function describeAccount(account: Settings["channels"][number]): Record<string, unknown> {
  const shown = Object.entries(account).map(([key, value]): [string, unknown] => {
    if (SECRETS_OF_ACCOUNTS.has(key)) return [key, value === "" ? "(none)" : "(set)"];
    return [key, value];
  });
  if (account.channel !== "imessage") return Object.fromEntries(shown);
  const [program, ...args] = account.command;
  return { ...Object.fromEntries(shown), command: program, args: `(${args.length})` };
}

/** The settings as `config.check` shows them: whole, but for secrets, of which only the presence is told. */
export function describeSettings(settings: Settings): Record<string, unknown> {
  const SET = "(set)";
  const { token, tokens, ...gateway } = settings.gateway;
  return {
    ...settings,
    gateway: {
      ...gateway,
      token: token === undefined ? "(generated at first start)" : SET,
      tokens: tokens.map((one) => ({ ...one, token: SET })),
    },
    store: { ...settings.store, ...(settings.store.postgresUrl === undefined ? {} : { postgresUrl: SET }) },
    hooks: describeHooks(settings.hooks),
    outgoingHooks: settings.outgoingHooks.map(({ url, ...hook }) => ({
      ...hook,
      // The rest of an address may be a secret.
      url: new URL(url).origin,
      secret: SET,
    })),
    providers: settings.providers.map(({ apiKey, headers, ...provider }) => ({
      ...provider,
      apiKey: apiKey === undefined ? "(none)" : SET,
      headers: Object.fromEntries(Object.keys(headers).map((name) => [name, SET])),
    })),
    agents: settings.agents.map(describeAgent),
    channels: settings.channels.map(describeAccount),
    tools: { ...settings.tools, mcp: describeMcp(settings.tools.mcp) },
  };
}
