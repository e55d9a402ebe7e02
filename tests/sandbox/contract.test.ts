// The guarantees of every sandbox backend, tested with each backend that works on this machine.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../kit/until.ts";
import { Box, running, whyNot } from "./kit.ts";

const missing = { bubblewrap: await whyNot("bubblewrap"), docker: await whyNot("docker") };

// Skipped if bubblewrap does not work on this machine; `whyNot` reports the reason. In CI it must work.
describe.skipIf(missing.bubblewrap !== undefined)("bubblewrap", () => contract("bubblewrap"));
// Skipped if docker does not work on this machine, also in CI.
describe.skipIf(missing.docker !== undefined)(missing.docker ?? "docker", () => contract("docker"));

function contract(backend: "bubblewrap" | "docker"): void {
  let box: Box;
  beforeEach(() => {
    box = new Box(backend);
    mkdirSync(box.workspace);
    mkdirSync(box.outside);
    writeFileSync(join(box.outside, "token"), "s3cret");
  });
  afterEach(() => box.remove());

  test("a program starts in the workspace, and its result contains the exit code and all output in order", async () => {
    const end = await box.run("pwd; echo one; echo two >&2; exit 3");
    expect(end).toMatchObject({ ending: "ended", exitCode: 3, text: `${box.workspace}\none\ntwo\n` });
    expect((await box.sandbox()).kind).toBe(backend);
  });

  test("S1, S2: only the workspace is writable, the system is read-only, and the rest of the host is invisible", async () => {
    expect(await box.says("echo x > made; cat made")).toBe("x");
    expect(existsSync(join(box.workspace, "made"))).toBe(true);
    expect(await box.says("echo x > /usr/x || echo no; echo x > /x || echo no; true")).toMatch(/no[\s\S]*no/);
    const tried = await box.run(`cat ${box.outside}/token; cat /proc/1/root${box.outside}/token; env`);
    expect(tried.text).not.toContain("s3cret");
    expect(await box.says(`test ! -e ${box.outside} && echo none`)).toBe("none");
  });

  test("I14: the gateway's environment is invisible, and standard input is empty", async () => {
    process.env.PARLEY_TEST_SECRET = "s3cret";
    try {
      expect(await box.says("env; cat")).not.toContain("s3cret");
      expect(await box.says('test "$HOME" = "$PWD" && echo $TMPDIR; touch $TMPDIR/x')).toBe("/tmp");
    } finally {
      delete process.env.PARLEY_TEST_SECRET;
    }
  });

  test("S3: the program has no network", async () => {
    expect(await box.says("grep -vc -e lo: -e '|' /proc/net/dev || true")).toBe("0");
  });

  test("S4: the program has no capabilities and cannot get any", async () => {
    const status = await box.says("cat /proc/self/status");
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    expect(status).toMatch(/^CapBnd:\s+0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
  });

  test("S5: background processes end with the program; a time limit or an abort also ends every process", async () => {
    const marker = `86401.${process.pid}`;
    await box.says(`setsid sleep ${marker} >/dev/null 2>&1 & echo started`);
    expect(running(marker)).toEqual([]);
    const late = await box.run(`sleep ${marker} & sleep ${marker}`, { limits: { timeoutMs: 2_000 } });
    expect(late.ending).toBe("timeout");
    expect(running(marker)).toEqual([]);
    const stop = new AbortController();
    const going = box.run(`setsid sleep ${marker} & sleep ${marker}`, { limits: { signal: stop.signal } });
    await until(() => running(`sleep\0${marker}`).length === 2);
    stop.abort();
    expect((await going).ending).toBe("aborted");
    expect(running(marker)).toEqual([]);
  });

  test("S6: a workspace that exceeds its quota can only shrink", async () => {
    writeFileSync(join(box.workspace, "big"), Buffer.alloc(52 << 20, 1));
    const needs = { diskMb: 48 };
    const more = await box.run("(echo x > more) 2>/dev/null || echo refused; rm big", { needs });
    expect(more).toMatchObject({ full: true, text: "refused\n" });
    expect(await box.run("echo x > more && echo fits", { needs })).toMatchObject({
      full: false,
      text: "fits\n",
    });
  });

  test("the file tools and exec see the same files under the same paths", async () => {
    const written = await box.tool("write", { path: "a/b.txt", content: "one\ntwo ✓\n" });
    expect(written).toEqual({ status: "ok", path: "a/b.txt", bytes: 12, created: true });
    expect(
      await box.tool("edit", { path: "a/b.txt", edits: [{ oldText: "one", newText: "1" }] }),
    ).toMatchObject({
      lines: [1],
    });
    expect(await box.tool("grep", { pattern: "^1$" })).toMatchObject({
      matches: [{ path: "a/b.txt", line: 1 }],
    });
    expect(await box.tool("glob", { pattern: "*.txt" })).toMatchObject({ paths: ["a/b.txt"] });
    const read = await box.tool("read", { path: join(box.workspace, "a/b.txt") });
    expect(read).toMatchObject({ status: "ok", path: "a/b.txt", text: "1\ntwo ✓\n" });
    expect(await box.tool("exec", { command: "cat a/b.txt" })).toMatchObject({
      exitCode: 0,
      output: "1\ntwo ✓\n",
    });
    expect(await box.tool("read", { path: "nothing" })).toMatchObject({ code: "file_not_found" });
    expect(await box.tool("read", { path: "/etc/passwd" })).toMatchObject({
      status: "forbidden",
      code: "path_outside",
    });
  });

  test("each workspace has its own cache of compiled code, so no program can change another one's cache", async () => {
    const other = join(box.folder, "other");
    const before = box.codeCaches().length;
    await box.tool("write", { path: "a", content: "" });
    await box.tool("write", { path: "a", content: "" }, { workspace: other });
    expect(box.codeCaches()).toHaveLength(before + 2);
  });

  test("a large text and a picture are passed unchanged", async () => {
    const content = `${"\u0001 ✓".repeat(1_000)}\n`.repeat(200);
    expect(await box.tool("write", { path: "large", content })).toMatchObject({
      bytes: Buffer.byteLength(content),
    });
    const picture = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(2 << 20, 7)]);
    writeFileSync(join(box.workspace, "picture.png"), picture);
    const seen = await box.tool("read", { path: "picture.png" });
    const [image] = seen.images as { data: string }[];
    expect(Buffer.from(image?.data ?? "", "base64").equals(picture)).toBe(true);
  });

  test.each(["with space", `quo'te"s`, "comma,colon", "-leading ✓"])(
    "a workspace with the name %j works",
    async (name) => {
      const place = join(box.folder, name);
      expect(await box.says("touch made; pwd", { workspace: place })).toBe(place);
      expect(existsSync(join(place, "made"))).toBe(true);
    },
  );
}
