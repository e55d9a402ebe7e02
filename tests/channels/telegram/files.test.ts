// Files that people send over Telegram: they are downloaded unchanged, within limits, and each failure has a
// reason.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { failed, type Json } from "../../kit/platforms/telegram/state.ts";
import { listeningGround, TOKEN } from "./ground.ts";

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
