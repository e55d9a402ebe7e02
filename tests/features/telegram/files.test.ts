// Files over Telegram. Files that people send are downloaded unchanged, within limits, and each failure has a
// reason. Files that agents send become photos or documents.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { failed, type Json } from "../../kit/platforms/telegram/state.ts";
import { DIRECT, FORUM, listeningGround, TOKEN, TOPIC } from "./ground.ts";

/** Sends a document, and returns the downloaded file. */
async function withFile(path: string, bytes: Uint8Array, more: Json = {}) {
  const opened = await listeningGround();
  opened.server.files.set("f1", { path, bytes });
  opened.brings({ document: { file_id: "f1", file_unique_id: "f1", ...more } });
  await opened.listening();
  await expect.poll(() => opened.host.received.length).toBe(1);
  const media = opened.host.received[0]?.media[0];
  if (media === undefined) throw new Error("there is no file");
  const load = (maxBytes = 1_000, signal = new AbortController().signal) => media.load(maxBytes, signal);
  return { ...opened, media, load };
}

test("a file is downloaded unchanged, even with spaces and percent signs in its path", async () => {
  const bytes = new Uint8Array(256).map((_, at) => at);
  const { load } = await withFile("docu ments/100% ?.bin", bytes);
  const loaded = await load();
  expect(loaded.ok && createHash("sha256").update(loaded.value).digest("hex")).toBe(
    createHash("sha256").update(bytes).digest("hex"),
  );
});

test.each(["../../bot/getMe", "documents//x", "documents/./x", "\ud800/x"])(
  "TM1: an unsafe file path is rejected: %j",
  async (path) => {
    const { load, server } = await withFile(path, new Uint8Array(3));
    server.answerNext("getFile", { status: 200, body: { ok: true, result: { file_path: path } } });
    expect(await load()).toMatchObject({ ok: false, error: "Telegram returned an invalid file path" });
  },
);

test("each missing file has a reason: too large, deleted, or on another machine's disk", async () => {
  const { load, server, media } = await withFile("documents/x", new Uint8Array(500), { file_size: 10 });
  expect(media.bytes).toBe(10);
  expect(await load(9)).toMatchObject({ ok: false, code: "too_large" });
  // Telegram reported 10 bytes; the file has 500.
  server.answerNext("getFile", { status: 200, body: { ok: true, result: { file_path: "documents/x" } } });
  expect(await load(100)).toMatchObject({
    ok: false,
    error: expect.stringContaining("longer than 100 bytes"),
  });
  server.answerNext("getFile", failed(400, "Bad Request: file is too big"));
  expect(await load()).toMatchObject({
    ok: false,
    code: "too_large",
    error: expect.stringContaining("20 MB"),
  });
  server.answerNext("getFile", { status: 200, body: { ok: true, result: { file_path: "/var/lib/x" } } });
  expect(await load()).toMatchObject({ ok: false, error: expect.stringContaining("--local") });
  server.files.delete("f1");
  const gone = await load();
  expect(gone).toMatchObject({ ok: false, error: expect.stringContaining("temporarily unavailable") });
  expect(JSON.stringify(gone)).not.toContain(TOKEN);
});

test("cancelling a download stops it", async () => {
  const { load, server } = await withFile("documents/x", new Uint8Array(5));
  expect(await load(100, AbortSignal.abort())).toMatchObject({ ok: false });
  expect(server.calls.filter(({ method }) => method === "getFile")).toEqual([]);
});

const PICTURE = {
  name: "plan.png",
  mimeType: "image/png",
  data: Buffer.from([0x89, 0x50, 0, 13, 10, 45, 45]),
};

/** Starts the channel, and returns a function that sends a file to a chat. */
async function sender() {
  const opened = await listeningGround();
  const send = (file = PICTURE, text = "", chat = DIRECT, threadId?: string) =>
    opened.channel.deliver({
      ...{ deliveryId: "d-1", sessionKey: "agent:main:main", part: 1, parts: 1, text, file },
      route: { channel: "telegram", to: String(chat), ...(threadId === undefined ? {} : { threadId }) },
    });
  const methods = () => opened.server.calls.map(({ method }) => method);
  return { ...opened, send, methods };
}

test("a picture is sent as a photo with its caption, another file as a document with its name", async () => {
  const { send, server, methods } = await sender();
  expect(await send(PICTURE, "**The** plan")).toEqual({ kind: "sent" });
  const bytes = Buffer.from(new Uint8Array(70_000).map((_, at) => at % 251));
  const document = { name: "Übersicht 2.pdf", mimeType: "application/pdf", data: bytes };
  expect(await send(document, "", FORUM, String(TOPIC))).toEqual({ kind: "sent" });
  expect(methods()).toEqual(["sendPhoto", "sendDocument"]);
  const [photo, sent] = server.sent;
  expect(photo).toMatchObject({ chatId: DIRECT, text: "The plan", entities: [{ type: "bold", length: 3 }] });
  expect(photo?.file).toEqual({ name: "plan.png", bytes: PICTURE.data });
  expect(sent).toMatchObject({ chatId: FORUM, threadId: TOPIC, text: "", file: { name: "Übersicht 2.pdf" } });
  expect(sent?.file?.bytes.equals(bytes)).toBe(true);
});

test("a picture that Telegram refuses as a photo is sent as a document", async () => {
  const { send, server, methods } = await sender();
  server.answerNext("sendPhoto", failed(400, "Bad Request: PHOTO_INVALID_DIMENSIONS"));
  expect(await send()).toEqual({ kind: "sent" });
  expect(methods()).toEqual(["sendPhoto", "sendDocument"]);
  expect(server.sent).toHaveLength(1);
});

test("I5: an upload whose answer is lost is not repeated, and one that is refused for now is tried again", async () => {
  const { send, server, methods } = await sender();
  server.answerNext("sendPhoto", { status: 200, body: "", cut: true });
  expect(await send()).toMatchObject({ kind: "unknown" });
  server.answerNext("sendPhoto", failed(429, "Too Many Requests: retry after 3", { retry_after: 3 }));
  expect(await send()).toMatchObject({ kind: "retry", afterMs: 3_000 });
  expect(methods()).toEqual(["sendPhoto", "sendPhoto"]);
  expect(JSON.stringify(await send(PICTURE, "", 1))).not.toContain(TOKEN);
});
