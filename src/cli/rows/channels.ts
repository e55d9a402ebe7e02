// Channels, the people who write over them, and the outbox.

import type { PeerRow } from "../../contract/methods/channels.ts";
import { head } from "../../core/text/cut.ts";
import { PLATFORM_NAMES } from "../../features.ts";
import { EXIT, isGone } from "../cli.ts";
import { age, count, excerpt } from "../layout.ts";
import { asks, type Commands, choice, flag, limit, linked, option, program } from "../row.ts";
import { namedSession, SESSION } from "../session-name.ts";

const ERROR_CHARS_MAX = 100;
const OUTBOX_TEXT_CHARS_MAX = 60;
const OUTBOX_ERROR_CHARS_MAX = 120;

/** Returns the options of a route. `channel`: the help text of --channel. */
export const routeOptions = (channel: string) => ({
  channel: option("<channel>", channel),
  account: option("<id>", "Use this account of --channel (default: the first)"),
  thread: option("<id>", "Use this thread or topic of --channel"),
});

/** Returns how a person is called in a line. */
const personName = ({ channel, peerId, name }: PeerRow): string =>
  `${channel}:${peerId}${name === undefined ? "" : ` (${name})`}`;

/** Formats a time limit in hours. Returns "" if there is no limit. */
const hours = (ms: number): string => (ms === 0 ? "" : `${Math.round(ms / 36_000) / 100} h`);

const CODE = { "<code>": "" };

const PAIR: Commands = {
  list: asks({
    summary: "List pending codes and approved people",
    isDefault: true,
    ask: (link) => link.request("channels.pair.list", {}),
    print: (cli, { peers }) =>
      cli.table(
        peers,
        {
          CODE: ({ code }) => code,
          STATE: ({ state }) => state,
          ACCOUNT: ({ channel, accountId }) => `${channel}:${accountId}`,
          ID: ({ peerId }) => peerId,
          NAME: ({ name }) => name,
          ASKED: ({ askedAt }) => cli.ago(askedAt),
        },
        cli.style("dim", "(no pending codes, and nobody is approved)"),
      ),
  }),
  approve: asks({
    summary: "Approve the person with this code",
    args: CODE,
    ask: (link, { code }) => link.request("channels.pair.approve", { code }),
    print: (cli, { peer }) => cli.say(`${personName(peer)} is approved and can write now.`),
  }),
  reject: asks({
    summary: "Reject the person with this code",
    args: CODE,
    ask: (link, { code }) => link.request("channels.pair.reject", { code }),
    print: (cli, { peer }) => cli.say(`${personName(peer)} was rejected.`),
  }),
  remove: asks({
    summary: "Revoke someone's access",
    args: { "<peer>": "Person, like telegram:123456" },
    options: { account: option("<name>", "Revoke the access at this account only") },
    misuse: ({ peer }) =>
      /^[^:]+:./s.test(peer)
        ? undefined
        : "the person must be like telegram:123456; see npx parley-gateway channels pair",
    ask(link, { peer, account: accountId }) {
      const at = peer.indexOf(":");
      const person = { channel: peer.slice(0, at), peerId: peer.slice(at + 1) };
      return link.request("channels.pair.remove", { ...person, accountId });
    },
    print: (cli, { peer }) => cli.say(`${personName(peer)} no longer has access.`),
  }),
};

export const CHANNELS: Commands = {
  list: asks({
    summary: "List the channels and their status",
    isDefault: true,
    ask: (link) => link.request("channels.status", {}),
    print(cli, { channels }) {
      cli.table(channels, {
        CHANNEL: ({ id }) => id,
        STATE: ({ state }) => state,
        SINCE: ({ connectedSince: at }) => at && age(at, cli.parts.world.clock.now()),
        WAITING: ({ pending }) => pending || undefined,
        FAILED: ({ failed }) => failed || undefined,
        ERROR: ({ lastError = "" }) => head(lastError, ERROR_CHARS_MAX),
      });
      if (!channels.some(({ kind }) => kind === "channel"))
        cli.note("No channel account is configured. Add one: npx parley-gateway channels add");
    },
  }),
  add: program({
    summary: "Set up an account, step by step",
    args: { "[channel]": PLATFORM_NAMES },
    options: {
      account: option("<name>", "Add another account of the channel, with this name"),
      set: option(
        "<key=value...>",
        "Give these values instead of answering questions; ${NAME} is read from the environment",
      ),
      noTest: flag("Do not test the account at the platform first"),
    },
    load: async () => (await import("../channels/add.ts")).addChannel,
  }),
  test: linked({
    summary: "Test whether the accounts work",
    args: { "[account]": "Account, like telegram or telegram:work (default: all)" },
    async work(cli, link, { account }) {
      const status = await link.request("channels.status", {});
      if (!status.ok) return cli.fail(status);
      const accounts = status.value.channels.filter(({ kind }) => kind === "channel").map(({ id }) => id);
      const wanted = accounts.filter(
        (id) => account === undefined || id === account || id.startsWith(`${account}:`),
      );
      if (wanted.length === 0) {
        const isEmpty = accounts.length === 0;
        const known = isEmpty ? "No account is configured." : `Accounts: ${accounts.join(", ")}.`;
        const error = account === undefined ? known : `Unknown account ${JSON.stringify(account)}. ${known}`;
        const hint = "Add one: npx parley-gateway channels add";
        return cli.fail({ code: "channel_unknown", error, ...(isEmpty ? { hint } : {}) });
      }
      const results = [];
      for (const id of wanted) {
        const [channel = "", accountId = ""] = id.split(":");
        const answer = await link.request("channels.test", { channel, accountId });
        if (!answer.ok && isGone(answer)) return cli.fail(answer);
        const text = answer.ok ? answer.value.name : answer.error;
        cli.verdict(answer.ok, `${id}: ${text}`);
        results.push({ account: id, ok: answer.ok, text });
      }
      const ok = results.every((one) => one.ok);
      cli.document({ ok, accounts: results });
      return ok ? EXIT.done : EXIT.failed;
    },
  }),
  pair: { summary: "Manage who may write to the agents", commands: PAIR },
  bindings: asks({
    summary: "List the threads and chats that are bound to a session",
    ask: (link) => link.request("bindings.list", {}),
    print: (cli, { bindings }) =>
      cli.table(
        bindings,
        {
          CHAT: ({ route: { channel, to, threadId = "" } }) => [channel, to, threadId].join(" ").trim(),
          KIND: ({ kind }) => kind,
          SESSION: ({ sessionKey }) => sessionKey,
          USED: ({ usedAt }) => cli.ago(usedAt),
          "EXPIRES AFTER": ({ idleMs }) => hours(idleMs),
          "MAX AGE": ({ maxAgeMs }) => hours(maxAgeMs),
        },
        cli.style("dim", "(no bindings)"),
      ),
  }),
  unbind: asks({
    summary: "Remove the bindings of a session",
    args: SESSION,
    find: namedSession,
    ask: (link, _, sessionKey) => link.request("bindings.unbind", { sessionKey }),
    print: (cli, { ended }, key) =>
      cli.say(ended === 0 ? `${key} has no bindings.` : `Removed ${count(ended, "binding")} of ${key}.`),
  }),
};

const ID = { "<id>": "" };

export const DELIVERIES: Commands = {
  list: asks({
    summary: "List deliveries, newest first",
    isDefault: true,
    options: {
      state: choice("<state>", "Show only deliveries in this state", [
        "pending",
        "sent",
        "failed",
        "skipped",
      ]),
      limit: limit(50),
    },
    ask: (link, filter) => link.request("deliveries.list", filter),
    print: (cli, { deliveries }) =>
      cli.table(
        deliveries,
        {
          ID: ({ id }) => id,
          STATE: ({ state, code }) => (code === undefined ? state : `${state} (${code})`),
          CREATED: ({ createdAt }) => cli.ago(createdAt),
          ATTEMPTS: ({ attempts }) => attempts,
          TO({ route: { channel, to, accountId = "default", threadId } }) {
            const from = accountId === "default" ? channel : `${channel}:${accountId}`;
            return threadId === undefined ? `${from} ${to}` : `${from} ${to} thread ${threadId}`;
          },
          TEXT: ({ text }) => excerpt(text, OUTBOX_TEXT_CHARS_MAX),
          ERROR: ({ state, error = "" }) => (state === "sent" ? "" : excerpt(error, OUTBOX_ERROR_CHARS_MAX)),
        },
        "The outbox is empty.",
      ),
  }),
  retry: asks({
    summary: "Retry a failed delivery",
    args: ID,
    ask: (link, { id }) => link.request("deliveries.retry", { id }),
    print: (cli, _answer, _found, { id }) => cli.say(`${id} will be retried.`),
  }),
  dismiss: asks({
    summary: "Dismiss a delivery, so that it is not retried",
    args: ID,
    ask: (link, { id }) => link.request("deliveries.dismiss", { id }),
    print: (cli, _answer, _found, { id }) => cli.say(`${id} is dismissed.`),
  }),
};
