// Files of messages: accepted and rejected files.

import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readAttachment } from "../../../src/features/imessage/files.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";

function ground() {
  const outside = temporaryFolder();
  const inside = temporaryFolder();
  mkdirSync(join(inside, "ab"));
  writeFileSync(join(inside, "ab", "note.txt"), "hello");
  writeFileSync(join(outside, "secret.txt"), "secret");
  const read = (path: string, maxBytes = 100, folders = [inside]) =>
    readAttachment(path, folders, maxBytes, new AbortController().signal);
  return { outside, inside, read };
}

describe("a file that Messages keeps", () => {
  test("a file inside an allowed folder is read completely", async () => {
    const { inside, read } = ground();
    const found = await read(join(inside, "ab", "note.txt"));
    expect(found.ok && Buffer.from(found.value).toString()).toBe("hello");
    const same = await read(join(inside, "ab", "..", "ab", "note.txt"), 5);
    expect(same.ok).toBe(true);
  });

  test("IF1: a file outside the allowed folders is not read, even through a link or a relative path", async () => {
    const { inside, outside, read } = ground();
    symlinkSync(join(outside, "secret.txt"), join(inside, "link.txt"));
    symlinkSync(outside, join(inside, "folder"));
    const ways = [
      join(outside, "secret.txt"),
      join(inside, "link.txt"),
      join(inside, "folder", "secret.txt"),
      `${inside}/../${outside.split("/").at(-1)}/secret.txt`,
      `${inside}-other/x`,
      "relative.txt",
      "~/../../etc/hostname",
      `${inside}/a\0b`,
      "",
      inside,
    ];
    for (const way of ways) expect(await read(way)).toMatchObject({ ok: false, code: "file_problem" });
    expect(await read(join(outside, "secret.txt"), 100, [])).toMatchObject({ ok: false });
  });

  test("IF1: a symbolic link is followed if it leads to an allowed folder", async () => {
    const { inside, outside, read } = ground();
    symlinkSync(join(inside, "ab", "note.txt"), join(inside, "alias.txt"));
    symlinkSync(inside, join(outside, "messages"));
    linkSync(join(inside, "ab", "note.txt"), join(inside, "hard.txt"));
    expect((await read(join(inside, "alias.txt"))).ok).toBe(true);
    expect((await read(join(inside, "hard.txt"))).ok).toBe(true);
    expect(
      (await read(join(outside, "messages", "ab", "note.txt"), 100, [join(outside, "messages")])).ok,
    ).toBe(true);
  });

  test("IF2: a file that is too large, a folder, a pipe and a device are rejected without blocking", async () => {
    const { inside, read } = ground();
    expect(await read(join(inside, "ab", "note.txt"), 4)).toMatchObject({ ok: false, code: "too_large" });
    expect(await read(join(inside, "ab"))).toMatchObject({ ok: false, code: "file_problem" });
    execFileSync("mkfifo", [join(inside, "pipe")]);
    expect(await read(join(inside, "pipe"))).toMatchObject({ ok: false, code: "file_problem" });
    expect(await read("/dev/zero", 100, ["/dev"])).toMatchObject({ ok: false, code: "file_problem" });
    expect(await read(join(inside, "gone.txt"))).toMatchObject({
      ok: false,
      error: expect.stringContaining("no longer exists"),
    });
  });
});
