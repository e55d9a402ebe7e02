// Attachments of sub-agents, with real files in temporary folders, and on a small file system if the test may
// mount one.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  type AttachmentPlan,
  attachmentDirs,
  planAttachments,
  removeAttachments,
  writeAttachments,
} from "../../../src/flows/job/attachments.ts";
import { lacks } from "../../kit/process/lacks.ts";
import { settingsWith } from "../../tools/app.ts";

const LIMITS = settingsWith().tools.sessionsSpawn.attachments;
const ID = "0b8f6c1e-0000-4000-8000-000000000001";
const OWNER = "a-store";
const DIR = `.parley/attachments/${ID}`;

let root = "";
let workspace = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "parley-attachments-"));
  workspace = join(root, "workspace");
  mkdirSync(workspace);
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function planOf(
  ...files: { name: string; content: string; encoding?: string; mimeType?: string }[]
): AttachmentPlan {
  const plan = planAttachments(files, LIMITS);
  if (!plan.ok || plan.value === undefined) throw new Error("no plan");
  return plan.value;
}
const mode = (path: string): string => (statSync(join(workspace, path)).mode & 0o777).toString(8);
const two = (): AttachmentPlan =>
  planOf(
    { name: "a.txt", content: "hello" },
    { name: "b.bin", content: "AAEC", encoding: "base64", mimeType: "a/b" },
  );

test("files and manifest are readable by their owner only, and the result lists them", async () => {
  const umask = process.umask(0o077);
  mkdirSync(join(workspace, ".parley"), { mode: 0o755 });
  process.umask(umask);
  const written = await writeAttachments(workspace, two(), ID, OWNER);
  const sums = [
    "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    "ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc",
  ];
  expect(written).toEqual({
    ok: true,
    value: {
      dir: DIR,
      files: [
        { name: "a.txt", bytes: 5, sha256: sums[0] },
        { name: "b.bin", bytes: 3, sha256: sums[1] },
      ],
    },
  });
  expect(readFileSync(join(workspace, DIR, "b.bin"))).toEqual(Buffer.from([0, 1, 2]));
  expect(JSON.parse(readFileSync(join(workspace, DIR, "manifest.json"), "utf8"))).toEqual({
    owner: OWNER,
    files: [
      { name: "a.txt", bytes: 5, sha256: sums[0], mimeType: "text/plain; charset=utf-8" },
      { name: "b.bin", bytes: 3, sha256: sums[1], mimeType: "a/b" },
    ],
  });
  for (const path of [".parley", ".parley/attachments", DIR]) expect(mode(path)).toBe("700");
  for (const name of readdirSync(join(workspace, DIR))) expect(mode(join(DIR, name))).toBe("600");
});

test("a missing workspace is created, and its path may contain a symbolic link", async () => {
  const later = join(root, "later", "on");
  expect(await writeAttachments(later, two(), ID, OWNER)).toMatchObject({ ok: true });
  symlinkSync(later, join(root, "link"));
  expect(await writeAttachments(join(root, "link"), two(), "second", OWNER)).toMatchObject({ ok: true });
  expect(readdirSync(join(later, ".parley/attachments")).sort()).toEqual([ID, "second"]);
});

test("without attachments there is no plan, and an invalid attachment gives an error", () => {
  expect(planAttachments([], LIMITS)).toEqual({ ok: true, value: undefined });
  expect(planAttachments([{ name: "../a", content: "" }], LIMITS)).toMatchObject({
    code: "invalid_argument",
  });
});

test.each([".parley", ".parley/attachments"])(
  "AF2: if %s is a symbolic link, nothing is written or removed, and the link's target stays unchanged",
  async (link) => {
    const outside = join(root, "outside");
    mkdirSync(join(outside, "attachments", ID), { recursive: true });
    mkdirSync(join(outside, ID));
    if (link !== ".parley") mkdirSync(join(workspace, ".parley"));
    symlinkSync(outside, join(workspace, link));
    const before = readdirSync(outside, { recursive: true });
    const refused = { ok: false, code: "file_problem", error: expect.stringContaining("link") };
    expect(await writeAttachments(workspace, two(), "new", OWNER)).toMatchObject(refused);
    expect(await removeAttachments(workspace, DIR)).toMatchObject(refused);
    expect(await attachmentDirs(workspace, OWNER)).toMatchObject(refused);
    expect(readdirSync(outside, { recursive: true })).toEqual(before);
    expect(lstatSync(join(workspace, link)).isSymbolicLink()).toBe(true);
  },
);

test("AF1: an existing folder is left unchanged", async () => {
  mkdirSync(join(workspace, DIR), { recursive: true });
  writeFileSync(join(workspace, DIR, "mine"), "x");
  expect(await writeAttachments(workspace, two(), ID, OWNER)).toMatchObject({
    ok: false,
    code: "file_problem",
  });
  expect(readdirSync(join(workspace, DIR))).toEqual(["mine"]);
  rmSync(join(workspace, DIR), { recursive: true });
  symlinkSync(root, join(workspace, DIR));
  expect(await writeAttachments(workspace, two(), ID, OWNER)).toMatchObject({
    ok: false,
    code: "file_problem",
  });
  expect(existsSync(join(root, "a.txt"))).toBe(false);
});

test("AF1: if a file has the name of the folder, it is reported and kept", async () => {
  writeFileSync(join(workspace, ".parley"), "x");
  const written = await writeAttachments(workspace, two(), ID, OWNER);
  expect(written).toMatchObject({ ok: false, error: expect.stringContaining("not a folder") });
  expect(readdirSync(workspace)).toEqual([".parley"]);
});

/** Mounts a file system with 64 KiB. Returns false if this user may not mount. */
function smallDisk(path: string): boolean {
  mkdirSync(path);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", path], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

test("AF1: if the disk becomes full during the write, no new file remains, and earlier files stay unchanged", async (ctx) => {
  const disk = join(root, "disk");
  // Skipped if the test may not mount, because no other disk is small enough to become full.
  if (lacks("the right to mount", smallDisk(disk))) return ctx.skip();
  try {
    const files = ["a", "b", "c", "d"].map((name) => ({ name, content: "x".repeat(20_000) }));
    const full = { ok: false, code: "file_problem", error: expect.stringContaining("the disk is full") };
    expect(await writeAttachments(disk, planOf(...files), ID, OWNER)).toMatchObject(full);
    expect(readdirSync(disk)).toEqual([]);
    expect(await writeAttachments(disk, two(), "small", OWNER)).toMatchObject({ ok: true });
    expect(await writeAttachments(disk, planOf(...files), ID, OWNER)).toMatchObject(full);
    expect(readdirSync(join(disk, ".parley/attachments"))).toEqual(["small"]);
    expect(readdirSync(join(disk, ".parley/attachments/small")).sort()).toEqual([
      "a.txt",
      "b.bin",
      "manifest.json",
    ]);
  } finally {
    execFileSync("umount", [disk]);
  }
});

test("if simultaneous spawns fail, they do not remove each other's folders", async () => {
  const plan = two();
  const broken: AttachmentPlan = { files: [{ ...plan.files[0], name: "x".repeat(300) } as never] };
  for (let round = 0; round < 30; round += 1) {
    const place = join(workspace, String(round));
    const all = ["bad-1", "good", "bad-2", "bad-3"].map((id) =>
      writeAttachments(place, id === "good" ? plan : broken, id, OWNER),
    );
    expect((await Promise.all(all)).map(({ ok }) => ok)).toEqual([false, true, false, false]);
    expect(readdirSync(join(place, ".parley/attachments"))).toEqual(["good"]);
  }
});

test("AF3: removal also deletes files that the agent added, and symbolic links, but not the targets of links", async () => {
  await writeAttachments(workspace, two(), ID, OWNER);
  await writeAttachments(workspace, two(), "other", OWNER);
  const outside = join(root, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "keep"), "x");
  mkdirSync(join(workspace, DIR, "deep/deeper"), { recursive: true });
  writeFileSync(join(workspace, DIR, "deep/deeper/file"), "x");
  symlinkSync(outside, join(workspace, DIR, "deep/link"));
  symlinkSync(join(outside, "keep"), join(workspace, DIR, "to-file"));
  symlinkSync("nowhere", join(workspace, DIR, "dangling"));
  chmodSync(join(workspace, DIR, "a.txt"), 0o400);
  expect(await attachmentDirs(workspace, OWNER)).toMatchObject({ ok: true });
  expect(await removeAttachments(workspace, DIR)).toEqual({ ok: true, value: undefined });
  expect(readdirSync(join(workspace, ".parley/attachments"))).toEqual(["other"]);
  expect(readdirSync(outside)).toEqual(["keep"]);
});

test("AF3: if a folder was replaced by a symbolic link, the link is deleted and its target is kept", async () => {
  const outside = join(root, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "keep"), "x");
  mkdirSync(join(workspace, ".parley/attachments"), { recursive: true });
  symlinkSync(outside, join(workspace, DIR));
  expect(await removeAttachments(workspace, DIR)).toEqual({ ok: true, value: undefined });
  expect(readdirSync(outside)).toEqual(["keep"]);
  expect(readdirSync(join(workspace, ".parley/attachments"))).toEqual([]);
});

test.each([
  "",
  ".",
  ".parley",
  ".parley/attachments",
  ".parley/attachments/",
  ".parley/attachments/..",
  ".parley/attachments/../..",
  `.parley/attachments/${ID}/..`,
  `.parley/attachments/${ID}/`,
  `./.parley/attachments/${ID}`,
  `/.parley/attachments/${ID}`,
  "../other",
  "a\0b",
])("AF3: %j is not a folder of attachments, so it is not removed", async (dir) => {
  await writeAttachments(workspace, two(), ID, OWNER);
  expect(await removeAttachments(workspace, dir)).toMatchObject({ ok: false, code: "path_outside" });
  expect(readdirSync(join(workspace, DIR))).toHaveLength(3);
});

test("removing a missing folder succeeds, and a folder that is nested too deeply is reported", async () => {
  expect(await removeAttachments(join(root, "no"), DIR)).toEqual({ ok: true, value: undefined });
  expect(await removeAttachments(workspace, DIR)).toEqual({ ok: true, value: undefined });
  expect(await attachmentDirs(workspace, OWNER)).toEqual({ ok: true, value: [] });
  mkdirSync(join(workspace, DIR, ...Array.from({ length: 70 }, () => "d")), { recursive: true });
  expect(await removeAttachments(workspace, DIR)).toMatchObject({ ok: false, code: "file_problem" });
});

test("AF2: if a symbolic link replaces the folder during the write, no file is written outside", async () => {
  const outside = join(root, "outside");
  const aside = join(root, "aside");
  mkdirSync(join(outside, "attachments"), { recursive: true });
  const place = join(workspace, ".parley");
  for (let round = 0; round < 40; round += 1) {
    const id = `round-${round}`;
    mkdirSync(join(place, "attachments"), { recursive: true });
    const writing = writeAttachments(workspace, two(), id, OWNER);
    // Each round replaces the folder a little later.
    for (let turn = 0; turn < round; turn += 1) await new Promise(setImmediate);
    renameSync(place, aside);
    try {
      symlinkSync(outside, place);
    } catch {
      // In this round the write was faster than the removal, and created the folder again.
    }
    await writing;
    await removeAttachments(workspace, `.parley/attachments/${id}`);
    expect(readdirSync(outside, { recursive: true })).toEqual(["attachments"]);
    rmSync(place, { recursive: true, force: true });
    rmSync(aside, { recursive: true, force: true });
  }
});

test("AF4: folders of another store in the same workspace are kept, and so are folders made by an agent", async () => {
  await writeAttachments(workspace, two(), ID, OWNER);
  await writeAttachments(workspace, two(), "of-another-store", "another-store");
  mkdirSync(join(workspace, ".parley/attachments/made-by-an-agent"));
  writeFileSync(join(workspace, ".parley/attachments/made-by-an-agent/notes.txt"), "mine");
  mkdirSync(join(workspace, ".parley/attachments/begun-and-lost"));
  const own = await attachmentDirs(workspace, OWNER);
  expect(own.ok && own.value.toSorted()).toEqual([DIR, ".parley/attachments/begun-and-lost"]);
});

test("damage: if a manifest is incomplete, its folder has no owner and is removed; a complete manifest names the owner", async () => {
  await writeAttachments(workspace, two(), ID, OWNER);
  const whole = readFileSync(join(workspace, DIR, "manifest.json"));
  const begun = (id: string, manifest: Buffer | string): string => {
    const dir = `.parley/attachments/${id}`;
    mkdirSync(join(workspace, dir));
    writeFileSync(join(workspace, dir, "manifest.json"), manifest);
    return dir;
  };
  const torn = [
    begun("torn-0", ""),
    begun("torn-1", whole.subarray(0, 12)),
    begun("torn-2", Buffer.alloc(whole.length)),
    begun("torn-3", whole.subarray(0, whole.indexOf(OWNER) + 4)),
  ];
  begun("of-another-store", '{\n  "owner": "another-store",\n  "files": [');
  begun("made-by-an-agent", '{"name": "a page"}');
  writeFileSync(join(workspace, begun("with-files", ""), "notes.txt"), "mine");
  const own = await attachmentDirs(workspace, OWNER);
  expect(own.ok && own.value.toSorted()).toEqual([DIR, ...torn].toSorted());
  for (const dir of torn)
    expect(await removeAttachments(workspace, dir)).toEqual({ ok: true, value: undefined });
  expect(readdirSync(join(workspace, ".parley/attachments")).toSorted()).toEqual(
    [ID, "made-by-an-agent", "of-another-store", "with-files"].toSorted(),
  );
});
