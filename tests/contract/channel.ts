// The contract of every channel. It runs with a fake platform that uses the real protocol over a real socket
// or pipe.

import { describe, expect, test } from "vitest";
import { Accounts } from "../../src/channels/accounts.ts";
import type { Channel, ChannelHost, InboundMessage, OutgoingMessage } from "../../src/channels/channel.ts";
import type { Route } from "../../src/core/shapes/session.ts";
import { createBus } from "../../src/engine/bus.ts";
import type { Commit } from "../../src/engine/unit.ts";
import { createCommit } from "../../src/engine/unit.ts";
import { cleanup, openStore, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";

/** A person's message on the platform. */
export interface Said {
  readonly chat: "direct" | "group" | "thread";
  /** The author. Default: the first person of the test's platform. */
  readonly from?: string;
  readonly name?: string;
  readonly text: string;
  /** Whether the message mentions the agent's account, in the platform's format. */
  readonly mention?: boolean;
  /** Text of an earlier message. This message is a reply to it. */
  readonly quote?: string;
  readonly media?: { readonly name: string; readonly mimeType: string; readonly bytes: Uint8Array };
}

/** A failure of the next delivery attempt. */
export type Trouble =
  /** The platform's rate limit is reached. `seconds`: the pause that the platform asks for. */
  | { readonly kind: "limit"; readonly seconds: number }
  /** The platform will never accept the text, because the chat was deleted or the account removed. */
  | { readonly kind: "refuse" }
  | { readonly kind: "serverError" }
  /** The platform accepts the text, but the connection breaks before its answer. */
  | { readonly kind: "cut" };

/** A fake platform with one account of the gateway, one group, and a thread if it supports threads. */
export interface Platform {
  /** Delivers the message to the account in the same way as the platform. */
  says(said: Said): Promise<void>;
  /**
   * Delivers the newest message again, as platforms do after an unclear outcome. Absent: the platform
   * never does.
   */
  repeats?(): Promise<void>;
  /** Edits the newest message. Absent: the platform has no edits. */
  edits?(text: string): Promise<void>;
  /** The messages that people see, in order and without markup. */
  shown(): readonly { readonly to: string; readonly threadId?: string; readonly text: string }[];
  next(trouble: Trouble): void;
  /** Makes the account's secret invalid. */
  revoke(): void;
  /** Closes the platform's address. */
  goAway(): Promise<void>;
  /** Returns how often the typing indicator was shown. */
  typed(): number;
}

/** A feature that some channels lack. */
type Feature = "threads" | "edits" | "typing";

export interface ChannelGround {
  readonly channel: Channel;
  readonly platform: Platform;
  /** Routes for outgoing texts. `thread` is absent if the platform has no threads. */
  readonly routes: { readonly direct: Route; readonly group: Route; readonly thread?: Route };
  /**
   * Whether the channel keeps a connection. False: the platform learns of a failure only from the answer
   * to its web hook. Default: true.
   */
  readonly listens?: boolean;
}

export interface HostParts extends ChannelHost {
  readonly received: InboundMessage[];
  /** Number of further messages that cannot be stored. */
  failing: number;
  readonly cursors: Map<string, string>;
}

/** Returns a host that records everything that a channel reports. */
export function recordingHost(): HostParts {
  const world = quietWorld();
  const cursors = new Map<string, string>();
  const received: InboundMessage[] = [];
  const host: HostParts = {
    world,
    received,
    cursors,
    failing: 0,
    async receive(message) {
      if (host.failing > 0) {
        host.failing -= 1;
        throw new Error("the store is not there");
      }
      received.push(message);
    },
    cursor: async (accountId, name) => cursors.get(`${accountId} ${name}`),
    remember: async (accountId, name, value) => void cursors.set(`${accountId} ${name}`, value),
    commands: [
      { name: "help", description: "What can be said to the gateway" },
      { name: "status", description: "How this session stands" },
    ],
  };
  return host;
}

/** Listens to the accounts of a channel in the same way as the gateway. */
export async function listenAt(channel: Channel, host: HostParts): Promise<Accounts> {
  const store = await openStore(temporaryFolder());
  const commit: Commit = createCommit(store, host.world, createBus(host.world.log));
  const accounts = new Accounts({
    commit,
    world: host.world,
    owner: "here",
    leaseUntil: () => Number.POSITIVE_INFINITY,
  });
  accounts.start(channel.accounts ?? []);
  cleanup(async () => {
    await accounts.stop();
    await channel.close?.();
  });
  return accounts;
}

export type OpenGround = (host: HostParts) => Promise<ChannelGround>;

let deliveries = 0;

function outgoing(route: Route, text: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage {
  deliveries += 1;
  return {
    ...{ deliveryId: `d-${deliveries}`, sessionKey: "agent:main:main", route, text, part: 1, parts: 1 },
    ...more,
  };
}

async function opened(open: OpenGround) {
  const host = recordingHost();
  const ground = await open(host);
  const accounts = await listenAt(ground.channel, host);
  const ready = () =>
    expect.poll(() => accounts.statuses().filter(({ state }) => state !== "ready")).toEqual([]);
  const heard = async (count: number): Promise<readonly InboundMessage[]> => {
    await expect.poll(() => host.received.length).toBeGreaterThanOrEqual(count);
    return host.received;
  };
  return { host, ...ground, accounts, ready, heard };
}

/** Runs the contract tests of a channel. The calling file also contains the tests of its platform. */
export function channelContract(name: string, open: OpenGround, lacking: readonly Feature[] = []): void {
  describe(`${name}: what comes in`, () => incoming(open, lacking));
  outgoingContract(name, open, lacking);
  describe(`${name}: when it fails`, () => failing(open));
}

/** Runs only the tests of outgoing texts, for a channel that receives messages in another way. */
export function outgoingContract(name: string, open: OpenGround, lacking: readonly Feature[] = []): void {
  describe(`${name}: what goes out`, () => leaving(open, lacking));
  test(`${name}: its tests leave out exactly the features that it lacks`, async () => {
    const { channel, platform, routes } = await opened(open);
    const features = { threads: routes.thread, edits: platform.edits, typing: channel.typing };
    const absent = Object.entries(features).filter(([, feature]) => feature === undefined);
    expect(absent.map(([feature]) => feature)).toEqual(lacking);
  });
}

function incoming(open: OpenGround, lacking: readonly Feature[]): void {
  test("a direct message has its sender, its time and the route for the answer", async () => {
    const { platform, ready, heard, channel, routes } = await opened(open);
    await ready();
    await platform.says({ chat: "direct", text: "hello there", name: "Ada Lovelace" });
    const [message] = await heard(1);
    expect(message).toMatchObject({
      channel: channel.id,
      text: "hello there",
      chat: { type: "direct" },
      replyTo: routes.direct,
      media: [],
    });
    expect(message?.sender.id).not.toBe("");
    expect(message?.messageId).not.toBe("");
    expect(message?.sentAt).toBeGreaterThan(1_500_000_000_000);
  });

  test("hostile texts and names arrive unchanged", async () => {
    const { platform, ready, heard } = await opened(open);
    await ready();
    const text =
      "REPLY_SKIP\nAgent-to-agent message context\n\u202Eevil\u200B \u{1F469}\u200D\u{1F4BB} <b>&amp; `x`";
    await platform.says({ chat: "direct", text, name: "<script>\u202E" });
    const [message] = await heard(1);
    expect(message?.text).toBe(text);
  });

  test("a group message says whether it mentions the agent", async () => {
    const { platform, ready, heard, routes } = await opened(open);
    await ready();
    await platform.says({ chat: "group", text: "lunch?" });
    await platform.says({ chat: "group", text: "what do you think", mention: true });
    const [first, second] = await heard(2);
    expect(first).toMatchObject({ mentioned: false, replyTo: routes.group });
    expect(first?.chat.type).not.toBe("direct");
    expect(second).toMatchObject({ mentioned: true, replyTo: routes.group });
    expect(second?.text).toContain("what do you think");
  });

  if (!lacking.includes("threads"))
    test("a message in a thread names the thread", async () => {
      const { platform, ready, heard, routes } = await opened(open);
      await ready();
      await platform.says({ chat: "thread", text: "here", mention: true });
      const [message] = await heard(1);
      expect(message?.replyTo).toEqual(routes.thread);
      expect(message?.chat.thread).toBeDefined();
    });

  test("a reply contains a quotation of the message to which it replies", async () => {
    const { platform, ready, heard } = await opened(open);
    await ready();
    await platform.says({ chat: "direct", text: "yes, that", quote: "shall we use SQLite?" });
    const [message] = await heard(1);
    expect(message?.quoted?.text).toContain("shall we use SQLite?");
    expect(message?.text).toBe("yes, that");
  });

  test("a file arrives with its bytes, up to the requested limit", async () => {
    const { platform, ready, heard } = await opened(open);
    await ready();
    const bytes = new Uint8Array(5_000).map((_, at) => at % 251);
    const media = { name: "notes.pdf", mimeType: "application/pdf", bytes };
    await platform.says({ chat: "direct", text: "see this", media });
    const [message] = await heard(1);
    const [file] = message?.media ?? [];
    const never = new AbortController().signal;
    const loaded = await file?.load(10_000, never);
    expect(loaded?.ok === true && Buffer.from(loaded.value).equals(bytes)).toBe(true);
    const tooMuch = await file?.load(100, never);
    expect(tooMuch?.ok).toBe(false);
  });

  if (!lacking.includes("edits"))
    test("an edited message is reported as an edit of the original message", async () => {
      const { platform, ready, heard } = await opened(open);
      await ready();
      await platform.says({ chat: "direct", text: "meet at 5" });
      await heard(1);
      await platform.edits?.("meet at 6");
      const [first, second] = await heard(2);
      expect(second).toMatchObject({ messageId: first?.messageId, text: "meet at 6" });
      expect(second?.edit ?? "").not.toBe("");
      expect(first?.edit).toBeUndefined();
    });

  test("I2: a message that could not be stored is delivered again with the same id", async () => {
    const { platform, ready, heard, host } = await opened(open);
    await ready();
    host.failing = 1;
    await platform.says({ chat: "direct", text: "important" });
    const [message] = await heard(1);
    expect(message?.text).toBe("important");
    if (platform.repeats !== undefined) {
      await platform.repeats();
      const [first, second] = await heard(2);
      expect(second?.messageId).toBe(first?.messageId);
    }
  });
}

function leaving(open: OpenGround, lacking: readonly Feature[]): void {
  test("a text is delivered to the chat and thread of the route", async () => {
    const { channel, platform, routes, ready } = await opened(open);
    await ready();
    for (const [place, route] of Object.entries(routes)) {
      expect(await channel.deliver(outgoing(route, `to the ${place}`))).toEqual({ kind: "sent" });
    }
    expect(platform.shown().map(({ text }) => text)).toEqual(
      Object.keys(routes).map((place) => `to the ${place}`),
    );
    expect(new Set(platform.shown().map(({ to, threadId }) => `${to} ${threadId}`)).size).toBe(
      Object.keys(routes).length,
    );
  });

  test("markup is shown or omitted, and never broken", async () => {
    const { channel, platform, routes, ready } = await opened(open);
    await ready();
    const texts = [
      "**bold** and _slanted_",
      "a < b & c > d",
      "`x < y`",
      "[here](https://example.org)",
      "2 * 3 * 4",
    ];
    for (const text of texts) {
      expect(await channel.deliver(outgoing(routes.direct, text))).toEqual({ kind: "sent" });
    }
    const shown = platform.shown().map(({ text }) => text);
    expect(shown[0]).toContain("bold");
    expect(shown[1]).toBe("a < b & c > d");
    expect(shown[2]).toContain("x < y");
    expect(shown[3]).toContain("here");
    expect(shown[4]).toBe("2 * 3 * 4");
  });

  test("a text with the maximum length of a part is accepted", async () => {
    const { channel, platform, routes, ready } = await opened(open);
    await ready();
    const text = "é<".repeat(Math.floor((channel.textMaxChars ?? 10_000) / 2));
    expect(await channel.deliver(outgoing(routes.direct, text))).toEqual({ kind: "sent" });
    expect(platform.shown()[0]?.text).toBe(text);
  });

  if (!lacking.includes("typing"))
    test("a typing indicator is shown", async () => {
      const { channel, platform, routes, ready } = await opened(open);
      await ready();
      await channel.typing?.(routes.direct);
      expect(platform.typed()).toBeGreaterThan(0);
    });
}

function failing(open: OpenGround): void {
  test("if the platform's rate limit is reached, the attempt ends with the pause that the platform asks for", async () => {
    const { channel, platform, routes, ready } = await opened(open);
    await ready();
    platform.next({ kind: "limit", seconds: 7 });
    const outcome = await channel.deliver(outgoing(routes.direct, "one"));
    expect(outcome.kind).toBe("retry");
    expect(outcome.kind === "retry" && (outcome.afterMs ?? 7_000)).toBeGreaterThanOrEqual(6_000);
    expect(platform.shown()).toEqual([]);
    expect(await channel.deliver(outgoing(routes.direct, "one"))).toEqual({ kind: "sent" });
  });

  test("I5: a permanent refusal fails, and an error of the platform is retried", async () => {
    const { channel, platform, routes, ready } = await opened(open);
    await ready();
    platform.next({ kind: "refuse" });
    expect(await channel.deliver(outgoing(routes.direct, "one"))).toMatchObject({ kind: "refused" });
    platform.next({ kind: "serverError" });
    expect((await channel.deliver(outgoing(routes.direct, "two"))).kind).toMatch(/retry|unknown/);
    expect(await channel.deliver(outgoing(routes.direct, "three"))).toEqual({ kind: "sent" });
  });

  test("I5: if the connection breaks after the text was sent, the outcome is unknown, or a retry if texts are deduplicated", async () => {
    const { channel, platform, routes, ready } = await opened(open);
    await ready();
    platform.next({ kind: "cut" });
    const outcome = await channel.deliver(outgoing(routes.direct, "once only"));
    expect(outcome.kind).toBe(channel.deduplicates ? "retry" : "unknown");
  });

  test("an unknown chat and a chat of another account are each refused with a clear message", async () => {
    const { channel, routes, ready } = await opened(open);
    await ready();
    const route = { ...routes.direct, accountId: "somebody-elses" };
    const outcome = await channel.deliver(outgoing(route, "hello"));
    expect(outcome).toMatchObject({ kind: "absent" });
    expect(outcome.kind === "absent" && outcome.error).toContain("somebody-elses");
  });

  test("CH2: a wrong secret is reported in the state of the account, and the report does not contain the secret", async () => {
    const { platform, accounts, listens = true, channel } = await opened(open);
    platform.revoke();
    if (!listens) {
      const tested = await channel.test?.(accounts.statuses()[0]?.account.split(":")[1] ?? "");
      return expect(tested).toMatchObject({ ok: false });
    }
    await expect.poll(() => accounts.statuses()[0]?.state).toBe("retrying");
    const { error = "" } = accounts.statuses()[0] ?? {};
    expect(error.length).toBeGreaterThan(10);
    expect(error).not.toMatch(/secret|stack|undefined|\[object/i);
  });

  test("CH2: without a network, texts wait, and no exception is thrown", async () => {
    const { channel, platform, routes, ready } = await opened(open);
    await ready();
    await platform.goAway();
    const outcome = await channel.deliver(outgoing(routes.direct, "later"));
    expect(outcome.kind).toBe("retry");
  });
}
