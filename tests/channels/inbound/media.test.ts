// Files of a message: pictures for the model, files in the workspace, or a note with the reason.

import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { InboundMedia } from "../../../src/channels/channel.ts";
import { optional } from "../../../src/core/optional.ts";
import { fail } from "../../../src/core/shapes/errors.ts";
import type { ProviderSettings } from "../../../src/core/shapes/settings/settings.ts";
import { inboundFolder } from "../../../src/flows/delivery/inbound-files.ts";
import { lostAttachments } from "../../../src/flows/job/archive.ts";
import { attachmentOwner, plannedFile, writeAttachments } from "../../../src/flows/job/attachments.ts";
import { deleteSession } from "../../../src/flows/session/lifecycle.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { type FlowApp, openFlowApp } from "../../kit/engine/flow-app.ts";
import { fakeChannel, offered, openAccount, said, saidInGroup } from "../../kit/platforms/fake-channel.ts";
import { until } from "../../kit/until.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";
import { agentSettings } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const GROUP = "agent:main:telegram:group:-100";
const MONTH_MS = 30 * 24 * 3_600_000;
const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3, 4]);

const seer: ProviderSettings = {
  id: "eyes",
  api: "openai-completions",
  baseUrl: "http://127.0.0.1:1",
  headers: {},
  connectTimeoutSeconds: 10,
  idleTimeoutSeconds: 90,
  maxRetries: 3,
  models: [
    {
      ...{ id: "see", contextWindow: 1_000, maxOutputTokens: 100, reasoning: false, images: true },
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    },
  ],
};

async function open(more: { world?: FakeWorld; sees?: boolean; mediaMaxBytes?: number } = {}) {
  const { sees = true, mediaMaxBytes = 10_000, world } = more;
  const workspace = temporaryFolder();
  const agent = agentSettings("main", { workspace, model: sees ? "eyes/see" : "offline/rehearsal" });
  const account = openAccount({ inbound: { debounceMs: 0, queue: "followup", mediaMaxBytes } });
  const app = await openFlowApp({
    plays: {},
    chat: fakeChannel(),
    choices: { channels: [account, { ...account, accountId: "second" }], agents: [agent], providers: [seer] },
    ...optional({ world }),
  });
  return { app, workspace, receive: app.inbound.receive };
}

const text = async (app: FlowApp): Promise<string> => (await app.runs(MAIN))[0]?.input.text ?? "";
const folders = (workspace: string): string[] => {
  const dir = join(workspace, ".parley", "attachments");
  return existsSync(dir) ? readdirSync(dir) : [];
};
const fileIn = async (app: FlowApp, workspace: string): Promise<string> => {
  const found = /Sent with this message: (\S+) \(/.exec(await text(app))?.[1] ?? "";
  return join(workspace, found);
};

describe("a picture", () => {
  test("a model with vision gets the picture, and its type is determined from its bytes", async () => {
    const { app, workspace, receive } = await open();
    await receive(said("what is this?", { media: [offered(PNG, { kind: "file", mimeType: "text/html" })] }));
    await app.quiet();
    const [run] = await app.runs(MAIN);
    expect(run?.input.images).toEqual([
      { type: "image", mimeType: "image/png", data: Buffer.from(PNG).toString("base64") },
    ]);
    expect(run?.input.text).toBe("what is this?\n[A file is part of this message.]");
    expect(folders(workspace)).toEqual([]);
  });

  test("a model without vision gets a picture as a file", async () => {
    const { app, workspace, receive } = await open({ sees: false });
    await receive(said("", { media: [offered(PNG, { kind: "image" })] }));
    await app.quiet();
    expect((await app.runs(MAIN))[0]?.input.images).toBeUndefined();
    const path = await fileIn(app, workspace);
    expect(path).toMatch(/image\.png$/);
    expect(readFileSync(path).equals(Buffer.from(PNG))).toBe(true);
  });
});

describe("a file", () => {
  test("a file is stored in the agent's workspace, readable by its owner only, and the message names it", async () => {
    const { app, workspace, receive } = await open();
    const bytes = new TextEncoder().encode("hello");
    await receive(
      said("read this", { media: [offered(bytes, { name: "notes.txt", mimeType: "text/plain" })] }),
    );
    await app.quiet();
    expect(await text(app)).toMatch(
      /^read this\n\[Sent with this message: \.parley\/attachments\/in-[\w-]+\/notes\.txt \(text\/plain, 5 bytes\)\]$/,
    );
    const path = await fileIn(app, workspace);
    expect(readFileSync(path, "utf8")).toBe("hello");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
  });

  test.each([
    ["../../../etc/passwd", /^_\.\._\.\._etc_passwd\.bin$/],
    ["CON.txt", /^file\.txt$/],
    ["a\u202Etxt.exe", /^a_txt\.exe$/],
    ["", /^file\.bin$/],
    ["..", /^file\.bin$/],
    ["manifest.json", /^file\.json$/],
    [`${"x".repeat(5_000)}.pdf`, /^x{80}\.pdf$/],
    ["résumé 1.pdf", /^résumé 1\.pdf$/],
    ["a]\n[Sent with this message: /etc/passwd", /^a__\w+/],
  ])("MD1: a file called %j gets a safe name", async (name, expected) => {
    const { app, workspace, receive } = await open();
    await receive(said("x", { media: [offered(new Uint8Array(3), { name })] }));
    await app.quiet();
    const [folder = ""] = folders(workspace);
    const files = readdirSync(join(workspace, ".parley", "attachments", folder));
    const own = files.filter((one) => one !== "manifest.json");
    expect(own).toHaveLength(1);
    expect(own[0]).toMatch(expected);
    expect((await text(app)).split("\n")).toHaveLength(2);
  });

  test("two files with the same name are both stored", async () => {
    const { app, workspace, receive } = await open();
    const media = [1, 2].map((n) => offered(new Uint8Array(n), { name: "a.bin" }));
    await receive(said("", { media }));
    await app.quiet();
    const [folder = ""] = folders(workspace);
    expect(readdirSync(join(workspace, ".parley", "attachments", folder)).sort()).toEqual([
      "a-2.bin",
      "a.bin",
      "manifest.json",
    ]);
  });

  test("MD2: a file that is too large, broken or deleted becomes a note, and other files are stored", async () => {
    const { app, receive } = await open({ mediaMaxBytes: 100 });
    const media: InboundMedia[] = [
      offered(new Uint8Array(5_000), { name: "large" }),
      offered(new Uint8Array(5_000), {
        name: "liar",
        bytes: 3,
        load: async () => ({ ok: true, value: new Uint8Array(5_000) }),
      }),
      offered(new Uint8Array(1), {
        name: "gone",
        load: async () => fail("file_problem", "the platform has lost it"),
      }),
      offered(new Uint8Array(1), {
        name: "broken",
        load: () => {
          throw new Error("boom at https://api.telegram.org/file/bot123:SECRET");
        },
      }),
      offered(new Uint8Array(50), { name: "fine.txt" }),
    ];
    await receive(said("look", { media }));
    await app.quiet();
    const told = (await text(app)).split("\n");
    expect(told).toEqual([
      "look",
      '[A file "large" came with this message, but is missing: it is larger than 0 MB]',
      '[A file "liar" came with this message, but is missing: it is larger than 0 MB]',
      '[A file "gone" came with this message, but is missing: the platform has lost it]',
      '[A file "broken" came with this message, but is missing: the content could not be read]',
      expect.stringMatching(/fine\.txt/),
    ]);
  });

  test("MD2: files beyond the limit of a message are only counted in the note", async () => {
    const { app, receive } = await open();
    await receive(said("", { media: Array.from({ length: 13 }, () => offered(new Uint8Array(1))) }));
    await app.quiet();
    expect(await text(app)).toContain("[3 more files came with this message; 10 is the limit.]");
  });

  test("MD2, IN3: a file that never arrives is given up, and messages of other senders do not wait for it", async () => {
    const world = fakeWorld();
    const { app, receive } = await open({ world });
    const asked = Promise.withResolvers<void>();
    const load = (): Promise<never> => {
      asked.resolve();
      return new Promise(() => {});
    };
    const stuck = offered(new Uint8Array(1), { name: "slow", load });
    const first = receive(said("with a file", { media: [stuck] }));
    const later = receive(said("behind it"));
    await asked.promise;
    await receive(said("from another", { from: "8" }));
    expect((await app.runs(MAIN)).map(({ input }) => input.text)).toEqual(["from another"]);
    await world.advance(30_000);
    await Promise.all([first, later]);
    expect((await app.runs(MAIN)).map(({ input }) => input.text)).toEqual([
      "from another",
      'with a file\n[A file "slow" came with this message, but is missing: it could not be loaded within 30 seconds]',
      "behind it",
    ]);
  });

  test("MD2: a file whose loading ends with the time limit is noted as one that came too late", async () => {
    const world = fakeWorld();
    const { app, receive } = await open({ world });
    const asked = Promise.withResolvers<void>();
    const load = async (_: number, signal: AbortSignal): Promise<never> => {
      asked.resolve();
      await once(signal, "abort");
      throw signal.reason;
    };
    const received = receive(said("", { media: [offered(new Uint8Array(1), { name: "slow", load })] }));
    await asked.promise;
    await world.advance(30_000);
    await received;
    expect(await text(app)).toContain("it could not be loaded within 30 seconds");
  });

  test.each([
    ["a group", "another chat", {}],
    ["an account", "another account", { accountId: "second" }],
  ])("MD4: files of %s that never arrive do not delay the files of %s", async (slow, _, other) => {
    const world = fakeWorld();
    const { app, receive } = await open({ world });
    const stuck = offered(new Uint8Array(1), { name: "slow", load: () => new Promise(() => {}) });
    const ids = Array.from({ length: 8 }, (_, at) => String(100 + at));
    const all = ids.map((from) =>
      receive((slow === "a group" ? saidInGroup : said)("slow", { from, media: [stuck] })),
    );
    const file = offered(new Uint8Array(10), { name: "quick" });
    await receive(said("quick", { from: "8", media: [file], ...other }));
    expect((await app.runs(MAIN)).map(({ input }) => input.text)).toEqual([expect.stringContaining("quick")]);
    let left = all.length;
    for (const one of all) void one.finally(() => left--);
    while (left > 0) await world.advance(30_000);
  });

  test("MD2: if no file has arrived after a minute, the message and later messages are stored without it", async () => {
    const world = fakeWorld();
    const { app, receive } = await open({ world });
    let asked = 0;
    const stuck = offered(new Uint8Array(1), {
      load: () => {
        asked += 1;
        return new Promise(() => {});
      },
    });
    const first = receive(said("with files", { media: Array.from({ length: 10 }, () => stuck) }));
    const later = receive(said("behind them"));
    for (const wanted of [1, 2]) {
      await until(() => asked >= wanted);
      await world.advance(30_000);
    }
    await Promise.all([first, later]);
    const [message, next] = (await app.runs(MAIN)).map(({ input }) => input.text);
    expect([asked, next]).toEqual([2, "behind them"]);
    expect(message?.match(/took too long/g)).toHaveLength(8);
  });

  test("if the workspace is not writable, the file is lost, but the message is kept", async () => {
    const { app, workspace, receive } = await open();
    mkdirSync(join(workspace, "elsewhere"));
    symlinkSync(join(workspace, "elsewhere"), join(workspace, ".parley"));
    await receive(said("look", { media: [offered(new Uint8Array(1), { name: "a.txt" })] }));
    await app.quiet();
    expect(await text(app)).toBe('look\n[A file "a.txt" came with this message, but could not be stored.]');
    expect(readdirSync(join(workspace, "elsewhere"))).toEqual([]);
  });
});

describe("how long files are kept", () => {
  const file = () => said("", { media: [offered(new Uint8Array(3), { name: "a.txt" })] });

  test("MD3: a message that arrives again leaves no files behind", async () => {
    const { app, workspace, receive } = await open();
    const message = file();
    const asEdit = { ...message, media: [], text: "changed", edit: "1" };
    await receive(asEdit);
    await receive(message);
    await app.quiet();
    await expect.poll(() => folders(workspace)).toEqual([]);
  });

  test("FI1: the start of a gateway removes only files that no message names", async () => {
    const { app, workspace, receive } = await open();
    await receive(file());
    await app.quiet();
    const owner = attachmentOwner(app.settings.store);
    const id = inboundFolder("00000000-0000-4000-8000-000000000000");
    const plan = { files: [plannedFile("lost.txt", "text/plain", Buffer.from("lost"))] };
    await writeAttachments(workspace, plan, id, owner);
    expect(folders(workspace)).toHaveLength(2);
    const lost = await lostAttachments(app.store.db, app.settings, app.engine.now());
    expect(lost.map(({ dir }) => dir)).toEqual([`.parley/attachments/${id}`]);
  });

  test("FI2: a month", async () => {
    const world = fakeWorld();
    const { app, workspace, receive } = await open({ world });
    await receive(file());
    while (!(await app.isQuiet())) await world.advance(1);
    await world.advance(MONTH_MS - 60_000);
    expect(folders(workspace)).toHaveLength(1);
    await world.advance(60_000);
    await expect.poll(() => folders(workspace)).toEqual([]);
  });

  test("FI2: files are kept as long as their session exists, and files of other sessions stay", async () => {
    const { app, workspace, receive } = await open();
    await receive(file());
    await receive(saidInGroup("", { media: [offered(new Uint8Array(3), { name: "b.txt" })] }));
    await app.quiet();
    expect(folders(workspace)).toHaveLength(2);
    const ctx = { ...app, dropTranscript: async () => {} };
    expect((await deleteSession(ctx, await app.session(GROUP))).ok).toBe(true);
    await expect.poll(() => folders(workspace).length).toBe(1);
    expect(readFileSync(await fileIn(app, workspace)).length).toBe(3);
  });
});
