// iMessage, with a real process that imitates `imsg rpc`: the contract of all channels, and rules for
// iMessage only.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { openChannel } from "../../../src/channels/registry.ts";
import { optional } from "../../../src/core/optional.ts";
import type { IMessageAccount } from "../../../src/features/imessage/imessage.ts";
import {
  channelContract,
  type HostParts,
  listenAt,
  recordingHost,
  type Said,
  type Trouble,
} from "../../contract/channel.ts";
import { quick, share, test } from "../../kit/deep.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import {
  type ImsgDesk,
  type ImsgDeskOptions,
  type ImsgTrouble,
  startImsgDesk,
} from "../../kit/platforms/imsg-desk.ts";
import { OPEN_ACCOUNT } from "../../kit/platforms/open-account.ts";
import { fakeWorld } from "../../kit/world.ts";

const ADA = "+15550100";
const GROUP = "iMessage;+;chat8123";

function account(command: readonly string[], more: Partial<IMessageAccount> = {}): IMessageAccount {
  return {
    ...OPEN_ACCOUNT,
    ...{ channel: "imessage", command, names: ["Parley"], attachmentFolders: [] },
    ...more,
  };
}

const DIRECT = { chat_id: 7, chat_identifier: ADA, chat_guid: `iMessage;-;${ADA}`, is_group: false };
const IN_GROUP = {
  chat_id: 8,
  chat_identifier: "chat8123",
  chat_guid: GROUP,
  chat_name: "Lunch",
  is_group: true,
};

let guids = 0;

/** Returns a row as the program sends it. */
function row(fields: object) {
  guids += 1;
  return {
    ...{ guid: `G-${guids}`, ...DIRECT, sender: ADA, sender_name: "Ada", is_from_me: false },
    ...{ text: "", created_at: "2026-01-01T00:00:00.000Z", attachments: [], reactions: [] },
    ...fields,
  };
}

function say({ chat, name, text, mention, quote, media }: Said, desk: ImsgDesk, folder: string): void {
  let answered = {};
  if (quote !== undefined) {
    const own = desk.add(row({ text: quote, is_from_me: true }));
    answered = { reply_to_guid: own.guid };
  }
  let attachments: object[] = [];
  if (media !== undefined) {
    const path = join(folder, media.name);
    writeFileSync(path, media.bytes);
    const type = { transfer_name: media.name, mime_type: media.mimeType, uti: "com.adobe.pdf" };
    attachments = [{ ...type, original_path: path, total_bytes: media.bytes.length, missing: false }];
  }
  desk.add(
    row({
      ...(chat === "group" ? IN_GROUP : DIRECT),
      ...optional({ sender_name: name }),
      ...{ text: mention === true ? `@Parley ${text}` : text, attachments, ...answered },
    }),
  );
}

const TROUBLES: Record<Trouble["kind"], ImsgTrouble> = {
  limit: { kind: "error", code: -32000, message: "Server busy" },
  refuse: { kind: "error", code: -32602, message: "Invalid params", data: "unknown chat_guid" },
  serverError: { kind: "error", code: -32603, message: "Internal error", data: "AppleScript timed out" },
  cut: { kind: "cut" },
};

async function ground(host: HostParts, options: ImsgDeskOptions = {}, more: Partial<IMessageAccount> = {}) {
  const desk = await startImsgDesk(options);
  const folder = temporaryFolder();
  const channel = await openChannel(
    "imessage",
    [account(desk.command, { attachmentFolders: [folder], ...more })],
    host,
  );
  return { desk, folder, channel };
}

for (const isOld of share([false], [true])) {
  channelContract(
    isOld ? "iMessage, by an older imsg" : "iMessage",
    async (host) => {
      const { desk, folder, channel } = await ground(host, { isOld });
      return {
        channel,
        routes: {
          direct: { channel: "imessage", to: ADA, accountId: "default" },
          group: { channel: "imessage", to: GROUP, accountId: "default" },
        },
        platform: {
          says: async (said) => say(said, desk, folder),
          repeats: async () => desk.again(),
          shown: () => desk.sent.map(({ to, chat_guid, text }) => ({ to: to ?? chat_guid ?? "", text })),
          next: ({ kind }) => desk.next(TROUBLES[kind]),
          revoke: () => desk.lock(),
          async goAway() {
            await desk.close();
            await expect.poll(async () => (await channel.test?.("default"))?.ok).toBe(false);
          },
          typed: () => 0,
        },
      };
    },
    ["threads", "edits", "typing"],
  );
}

async function listening(
  options: ImsgDeskOptions = {},
  host = recordingHost(),
  more: Partial<IMessageAccount> = {},
) {
  const { desk, folder, channel } = await ground(host, options, more);
  const accounts = await listenAt(channel, host);
  await expect.poll(() => desk.watches()).toBe(1);
  const heard = async (count: number) => {
    await expect.poll(() => host.received.length).toBeGreaterThanOrEqual(count);
    return host.received;
  };
  return { host, desk, folder, channel, accounts, heard };
}

const sending = (to: string, text = "x") => ({
  ...{ deliveryId: "1", sessionKey: "s", route: { channel: "imessage", to }, text, part: 1, parts: 1 },
});

quick(describe)("iMessage: its program", () => {
  test("IC1: if the program exits, it is restarted, and reading resumes after the last stored message", async () => {
    const { desk, heard, host } = await listening();
    desk.add(row({ text: "one" }));
    await heard(1);
    await expect.poll(() => host.cursors.get("default rowid")).toBe("101");
    desk.hangUp();
    desk.add(row({ text: "while nobody listened" }));
    expect((await heard(2)).map(({ text }) => text)).toEqual(["one", "while nobody listened"]);
    expect(desk.resumed).toEqual([undefined, 101]);
    expect(desk.programs()).toBe(1);
  });

  test("a missing program is a lasting problem with a clear error, and outgoing texts wait", async () => {
    const host = recordingHost();
    const channel = await openChannel("imessage", [account(["/nowhere/imsg", "rpc"])], host);
    const accounts = await listenAt(channel, host);
    await expect.poll(() => accounts.statuses()[0]?.error ?? "").toContain("macOS with imsg installed");
    expect(await channel.deliver(sending(ADA))).toMatchObject({ kind: "retry" });
    expect(await channel.test?.("default")).toMatchObject({ ok: false });
  });

  test("IP1, IP3: if the program exits at once, its last output is reported, without secrets", async () => {
    const world = fakeWorld({ clock: "real" });
    const host = { ...recordingHost(), world };
    const desk = await startImsgDesk();
    await desk.close();
    const channel = await openChannel("imessage", [account(desk.command)], host);
    const tested = await channel.test?.("default");
    const error = tested?.ok === false ? tested.error : "";
    expect(error).toContain("imsg ended with exit code 3");
    expect(error).toContain("these are the last words");
    expect(error.length).toBeLessThan(500);
    expect(JSON.stringify(world.logged)).not.toContain("a-very-secret-value");
    await channel.close?.();
  });

  test("IP4: closing the channel stops the program, even during a request", async () => {
    const host = recordingHost();
    const { desk, channel } = await ground(host);
    await channel.test?.("default");
    expect(desk.programs()).toBe(1);
    await channel.close?.();
    await expect.poll(() => desk.programs()).toBe(0);
    expect(await channel.deliver(sending(ADA))).toMatchObject({ kind: "retry" });
    expect(desk.programs()).toBe(0);
  });
});

quick(describe)("iMessage: incoming messages", () => {
  test("IM1: invalid lines are skipped, and the account continues", async () => {
    const { desk, heard, accounts } = await listening();
    const told = (message: unknown, subscription = 1) =>
      desk.raw(
        `${JSON.stringify({ jsonrpc: "2.0", method: "message", params: { subscription, message } })}\n`,
      );
    told({ guid: "c", sender: "x", text: "told to a watch that has ended" }, 99);
    for (const line of [
      "no json",
      "[]",
      "null",
      '{"id":99,"result":{}}',
      '{"method":5}',
      '{"method":"message"}',
    ]) {
      desk.raw(`${line}\n`);
    }
    desk.raw(`${"y".repeat(5_000_000)}\n`);
    for (const message of [
      null,
      7,
      {},
      { guid: 5 },
      { guid: "x".repeat(5_000), id: -1 },
      { guid: "a", sender: "" },
    ])
      told(message);
    told({ guid: "a", sender: "x", text: 7, attachments: "none", created_at: "never", chat_id: 1e300 });
    told({ guid: "b", sender: "x", is_group: true, text: "no group" });
    desk.add(row({ text: "still here" }));
    expect((await heard(1)).map(({ text }) => text)).toEqual(["still here"]);
    expect(accounts.statuses()[0]?.state).toBe("ready");
    expect(desk.resumed.length).toBe(1);
  });

  test("IM2: own messages, reactions and notices are ignored", async () => {
    const { desk, heard } = await listening();
    desk.add(row({ text: "mine", is_from_me: true }));
    desk.add(row({ text: "Loved an image", is_reaction: true }));
    desk.add(row({ text: "\uFFFC" }));
    desk.add(row({ text: "a real one" }));
    expect((await heard(1)).map(({ text }) => text)).toEqual(["a real one"]);
  });

  test("IM3: in a group, the name as a separate word or a reply to the agent is a mention", async () => {
    const { desk, heard } = await listening();
    const group = (text: string, more: object = {}) => desk.add(row({ ...IN_GROUP, text, ...more }));
    group("parley, what is new?");
    group("the parleys talked");
    group("@Parley /status");
    const own = group("I think so", { is_from_me: true });
    group("why?", { thread_originator_guid: own.guid });
    const told = (await heard(4)).map(({ text, mentioned }) => ({ text, mentioned }));
    expect(told).toEqual([
      { text: "parley, what is new?", mentioned: true },
      { text: "the parleys talked", mentioned: false },
      { text: "/status", mentioned: true },
      { text: "why?", mentioned: true },
    ]);
    const [first, , , answer] = await heard(4);
    expect(first?.chat).toMatchObject({ id: GROUP, name: "Lunch", alsoKnownAs: ["chat8123", "8"] });
    expect(answer).toMatchObject({ quoted: { text: "I think so" }, authors: [] });
  });

  test("IM3: a name may contain any character that has a meaning in a pattern", async () => {
    const names = ["Anna-Lena", "C3/PO", "[bot] (v1.0)*+?^$|\\{}"];
    const { desk, heard } = await listening({}, recordingHost(), { names });
    const group = (text: string) => desk.add(row({ ...IN_GROUP, text }));
    for (const name of names) group(`@${name}, what is new?`);
    for (const name of names) group(`what does ${name} say?`);
    group("Anna, what is new?");
    const told = (await heard(7)).map(({ text, mentioned }) => ({ text, mentioned }));
    expect(told).toEqual([
      ...names.map(() => ({ text: "what is new?", mentioned: true })),
      ...names.map((name) => ({ text: `what does ${name} say?`, mentioned: true })),
      { text: "Anna, what is new?", mentioned: false },
    ]);
  });

  test("a quotation of an older message is shown as the program reports it, or omitted", async () => {
    const { desk, heard } = await listening();
    desk.add(
      row({ text: "yes", reply_to_guid: "long-gone", reply_to_text: "an old one", reply_to_sender: ADA }),
    );
    desk.add(row({ text: "no", reply_to_guid: "long-gone" }));
    const old = { reply_to_guid: "long-gone", reply_to_text: "an old one" };
    desk.add(row({ ...IN_GROUP, text: "yes", ...old, reply_to_sender: ADA }));
    desk.add(row({ ...IN_GROUP, text: "yes", ...old }));
    const [first, second, third, fourth] = await heard(4);
    expect([first, third, fourth].map((one) => one?.authors)).toEqual([[], [[ADA]], [[]]]);
    expect(first?.quoted).toEqual({ text: "an old one", senderName: ADA });
    expect(second?.quoted).toBeUndefined();
  });

  test("recordings, stickers, polls and missing files become readable notes", async () => {
    const { desk, heard } = await listening();
    const voice = {
      uti: "com.apple.coreaudio-format",
      mime_type: "audio/x-caf",
      original_path: "/a.caf",
      total_bytes: 9,
    };
    desk.add(row({ text: "\uFFFC", attachments: [voice] }));
    desk.add(
      row({
        attachments: [
          { is_sticker: true, original_path: "/s.heic" },
          { missing: true, transfer_name: "a.mov" },
        ],
      }),
    );
    desk.add(
      row({ poll: { kind: "created", question: "Dinner?", options: [{ text: "Pizza" }, { text: "Soup" }] } }),
    );
    const [first, second, third] = await heard(3);
    expect(first).toMatchObject({ text: "", media: [{ kind: "voice", bytes: 9 }] });
    expect(second).toMatchObject({ text: "[sticker]\n[a file that is not on the Mac: a.mov]", media: [] });
    expect(third?.text).toBe("[poll: Dinner? (Pizza | Soup)]");
  });
});

quick(describe)("iMessage: outgoing text", () => {
  test("a person is addressed by handle and a group by id; other recipients are rejected", async () => {
    const { desk, channel } = await ground(recordingHost());
    for (const to of [ADA, "ada@example.org", GROUP]) {
      expect(await channel.deliver(sending(to, "**hi** [here](https://e.org)"))).toEqual({ kind: "sent" });
    }
    const text = "hi here (https://e.org)";
    expect(desk.sent).toEqual([
      { to: ADA, text },
      { to: "ada@example.org", text },
      { chat_guid: GROUP, text },
    ]);
    for (const to of ["", "Ada", "a;+;b c", `${"a".repeat(200)}@b`, "\u202E;+;x"]) {
      expect(await channel.deliver(sending(to))).toMatchObject({ kind: "refused" });
    }
    await channel.close?.();
  });

  test("I5: a text is retried only if the program reports that it was not sent", async () => {
    const { desk, channel } = await ground(recordingHost());
    const error = async (code: number, data?: unknown): Promise<string> => {
      desk.next({ kind: "error", code, message: "it failed", data });
      return (await channel.deliver(sending(ADA))).kind;
    };
    expect(await error(-32603, { retry_safe: true, disposition: "not_started" })).toBe("retry");
    expect(await error(-32001, { retry_safe: false, disposition: "may_have_completed" })).toBe("unknown");
    expect(await error(-32603, "Not authorized to send Apple events to Messages. (-1743)")).toBe("retry");
    expect(await error(-32603, "something else")).toBe("unknown");
    expect(await error(-32602, "unknown chat")).toBe("refused");
    expect(await error(-32601)).toBe("retry");
    expect(desk.sent).toEqual([]);
    await channel.close?.();
  });

  test("a program that is blocked by an earlier text is restarted", async () => {
    const { desk, channel, heard } = await listening();
    desk.next({ kind: "error", code: -32004, message: "Mutation lane blocked", data: { retry_safe: true } });
    expect(await channel.deliver(sending(ADA))).toMatchObject({ kind: "retry" });
    expect(await channel.deliver(sending(ADA, "again"))).toEqual({ kind: "sent" });
    await expect.poll(() => desk.watches()).toBe(1);
    desk.add(row({ text: "and it listens" }));
    await heard(1);
    expect(desk.programs()).toBe(1);
  });
});
