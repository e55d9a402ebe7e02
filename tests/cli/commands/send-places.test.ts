// `parley send` to people on a channel, and with a chat command as the message. Each test has its own
// gateway.

import { expect, test } from "vitest";
import { call, makeHome, run, runJson, startGateway } from "../kit.ts";

/** Nothing answers at this address, so texts stay in the queue. */
const telegram = { telegram: { botToken: "1:token", apiRoot: "http://127.0.0.1:1" } };

async function house() {
  const { home } = await makeHome({ channels: telegram });
  await startGateway(home);
  return home;
}

test("a text for a channel is queued for its chat, and a scheduled job may deliver to that chat, too", async () => {
  const home = await house();
  const place = ["--channel", "telegram", "--to", "-100", "--thread", "5"];
  const sent = await runJson(home, ["send", ...place, "the build is broken"]);
  expect(sent).toMatchObject({ ok: true, channel: "telegram", status: "queued" });
  const { deliveries } = (await runJson(home, ["deliveries"])) as { deliveries: { route: object }[] };
  expect(deliveries.map(({ route }) => route)).toEqual([
    { channel: "telegram", to: "-100", accountId: "default", threadId: "5" },
  ]);
  // Nothing answers at this address, so doctor lists the queued texts with destination and reason.
  await expect
    .poll(async () => (await run(home, ["deliveries"])).out)
    .toMatch(/telegram -100 thread 5 +the build is broken .*could not be reached/);
  const job = [
    "cron",
    "add",
    "tick",
    "--every",
    "1h",
    "--channel",
    "telegram",
    "--deliver",
    "-100",
    "--thread",
    "5",
  ];
  expect(await runJson(home, job)).toMatchObject({
    job: { deliver: { channel: "telegram", to: "-100", accountId: "default", threadId: "5" } },
  });
  const nowhere = await run(home, ["send", "--channel", "discord", "--to", "1", "hi"]);
  expect(nowhere.code).toBe(1);
  expect(nowhere.err).toContain('no channel "discord" is configured; configured: webchat, telegram');
});

const MISUSED: readonly (readonly [readonly string[], RegExp])[] = [
  [["send", "hi"], /no recipient: give --session <session>, or --channel and --to/],
  [["send", "--channel", "telegram", "hi"], /--channel needs --to/],
  [["send", "--session", "main", "--to", "1", "hi"], /need --channel/],
  [
    ["send", "--channel", "telegram", "--to", "1", "--wait", "5", "hi"],
    /--wait cannot be used with --channel/,
  ],
];

test.each(MISUSED)("the arguments %j are a usage error", async (argv, words) => {
  const { home } = await makeHome();
  const { code, err } = await run(home, argv);
  expect(code).toBe(2);
  expect(err).toMatch(words);
});

test("the gateway answers a chat command without the agent, in parley send and in parley chat", async () => {
  const home = await house();
  const told = await run(home, ["send", "--session", "main", "--wait", "20", "/think high"]);
  expect(told).toEqual({
    code: 0,
    out: "[/think high]\n\nThinking is `high` from the next message on.\n",
    err: "",
  });
  const chat = call(home, ["chat"]);
  await chat.shows("/help");
  chat.stdin.write("/think\n");
  await chat.shows("Thinking is `high`. Valid");
  chat.stdin.write("/frobnicate\n");
  await chat.shows("unknown command /frobnicate");
  chat.stdin.write("/quit\n");
  expect(await chat.code).toBe(0);
  expect(chat.out().split("Thinking is `high`. Valid")).toHaveLength(2);
});

interface Sessions {
  readonly sessions: readonly { readonly key: string }[];
}

async function homeWithWriter(): Promise<{ home: string; keys: () => Promise<string[]> }> {
  const { home } = await makeHome();
  await startGateway(home);
  expect((await run(home, ["send", "--session", "writer", "--wait", "30", "say hi"])).code).toBe(0);
  const keys = async (): Promise<string[]> =>
    ((await runJson(home, ["sessions", "list"])) as unknown as Sessions).sessions
      .map(({ key }) => key)
      .sort();
  return { home, keys };
}

test.each([
  ["send", (name: string) => ["send", "--session", name, "--wait", "30", "say hi"]],
  ["run", (name: string) => ["run", "--session", name, "say hi"]],
  ["chat", (name: string) => ["chat", "--session", name]],
])("%s opens no session for a mistyped name, unless --new says so", async (_, call) => {
  const { home, keys } = await homeWithWriter();
  const before = await keys();
  const refused = await run(home, call("writr"), { input: "say hi\n" });
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('There is no session "writr".');
  expect(refused.err).toContain("Similar: agent:main:writer.");
  expect(await keys()).toEqual(before);
  const opened = await run(home, [...call("writr"), "--new"], { input: "say hi\n" });
  expect(opened).toMatchObject({ code: 0, err: expect.stringContaining("New session: agent:main:writr") });
  expect(await keys()).toEqual([...before, "agent:main:writr"].sort());
});

test("a key of an agent that is not configured is refused with the agents, not with --new", async () => {
  const { home } = await homeWithWriter();
  const refused = await run(home, ["send", "--session", "agent:reserch:main", "say hi"]);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('no session "agent:reserch:main": no agent reserch');
  expect(refused.err).toContain("Configured agents: main, research, ops.");
  expect(refused.err).not.toContain("--new");
});
