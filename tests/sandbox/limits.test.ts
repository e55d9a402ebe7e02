// The limits of a sandbox and its clean-up: every process ends, and programs that use up a resource reach a
// limit, whatever the name of the workspace. Each of these programs also has a time limit.

import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { test } from "../kit/deep.ts";
import { lacks } from "../kit/process/lacks.ts";
import { PATIENCE_MS, until } from "../kit/until.ts";
import { Box, gatewayProgram, running, whyNot } from "./kit.ts";

const missing = await whyNot("bubblewrap");
const noPython = lacks("python3", existsSync("/usr/bin/python3"));
const noX64 = lacks("an x64 processor", process.arch === "x64");

// Skipped if bubblewrap does not work here; `whyNot` reports the reason, and fails in CI.
describe.skipIf(missing !== undefined)("bubblewrap", () => {
  let box: Box;
  const closers: (() => void)[] = [];
  let marker: string;
  let tests = 0;

  beforeEach(() => {
    box = new Box();
    mkdirSync(box.workspace);
    mkdirSync(box.outside);
    tests += 1;
    // A sleep time in seconds that no other process on this machine uses, to find the test's processes.
    marker = `86400.${process.pid}${String(tests).padStart(3, "0")}`;
  });
  afterEach(() => {
    for (const close of closers.splice(0)) close();
    for (const pid of running(marker)) process.kill(pid, "SIGKILL");
    box.remove();
  });

  describe("S5: end of processes", () => {
    test("when the tool answers, even a background process in its own session has exited", async () => {
      const text = await box.says(
        `setsid nohup sleep ${marker} >/dev/null 2>&1 & (sleep ${marker} &) ; echo started`,
      );
      expect(text).toBe("started");
      expect(running(marker)).toEqual([]);
    });

    test("when an abort is answered, every process has exited", async () => {
      const stop = new AbortController();
      const going = box.run(`trap '' TERM HUP INT; setsid sleep ${marker} & sleep ${marker}`, {
        limits: { signal: stop.signal },
      });
      await until(() => running(`sleep\0${marker}`).length === 2);
      stop.abort();
      expect((await going).ending).toBe("aborted");
      expect(running(marker)).toEqual([]);
    });

    test("an abort directly after the start leaves no process", async () => {
      for (let round = 0; round < 10; round++) {
        const stop = new AbortController();
        const going = box.run(`sleep ${marker}`, { limits: { signal: stop.signal } });
        for (let turn = 0; turn < round * 3; turn++) await new Promise((resolve) => setImmediate(resolve));
        stop.abort();
        expect((await going).ending).toBe("aborted");
        expect(running(marker)).toEqual([]);
      }
    });

    test.deep("if the gateway is killed, its sandboxed programs also exit", async () => {
      const code = gatewayProgram(box, `await box.run("sleep ${marker} & setsid sleep ${marker}");`);
      const gateway = spawn(process.execPath, ["--input-type=module", "-e", code]);
      await until(() => running(`sleep\0${marker}`).length === 2);
      gateway.kill("SIGKILL");
      await until(() => running(marker).length === 0);
    });

    test("a time limit ends the program and every process that it started", async () => {
      const end = await box.run(`sleep ${marker} & echo before; sleep ${marker}`, {
        limits: { timeoutMs: 400 },
      });
      expect(end).toMatchObject({ ending: "timeout", text: "before\n" });
      expect(running(marker)).toEqual([]);
    });
  });

  describe("S6: limits", () => {
    test("a fork bomb is stopped at the limit of processes", async () => {
      // A shell that cannot fork retries for 15 s. To avoid that, this shell starts no program while the bomb
      // runs.
      const wait = "while ((SECONDS < 2)); do :; done";
      const bomb = `bomb() { bomb | bomb & }; bomb 2>errors; : ${marker}; ${wait}`;
      const end = await box.run(bomb, { needs: { processesMax: 32 } });
      expect(["processes", "ended"]).toContain(end.ending);
      if (end.ending === "ended")
        expect(readFileSync(join(box.workspace, "errors"), "utf8")).toContain("fork: ");
      expect(running(marker)).toEqual([]);
    });

    test.deep("neither one process nor several together can exceed the memory limit", async () => {
      const needs = { memoryMb: 96 };
      const one = await box.run("head -c 200M /dev/zero | tail -c 200M | sleep 20", { needs });
      expect(one.ending).toBe("memory");
      const many = "for i in 1 2 3 4; do (head -c 60M /dev/zero | tail -c 60M | sleep 20) & done; wait";
      expect((await box.run(many, { needs })).ending).toBe("memory");
      const shared = "import mmap,time; m=mmap.mmap(-1,200<<20); m.write(b'x'*(200<<20)); time.sleep(20)";
      if (existsSync("/usr/bin/python3")) {
        expect((await box.run(`python3 -c "${shared}"`, { needs: { memoryMb: 150 } })).ending).toMatch(
          /memory|ended/,
        );
      }
    });

    test("the size of temporary files is limited", async () => {
      const command = "i=0; while head -c 8M /dev/zero > /tmp/f$i 2>/dev/null; do i=$((i+1)); done; echo $i";
      expect(Number(await box.says(command, { needs: { memoryMb: 64 } }))).toBeLessThan(5);
      const shm = "i=0; while head -c 8M /dev/zero > /dev/shm/f$i 2>/dev/null; do i=$((i+1)); done; echo $i";
      expect(Number(await box.says(shm))).toBeLessThan(9);
    });

    // Needs Python to end one thread of a process.
    test.skipIf(noPython || noX64)(
      "PT2: the memory of a process counts, even if its first thread has exited",
      async () => {
        const program = `
import ctypes, os, threading, time
def grow():
    kept = []
    for _ in range(40):
        kept.append(bytearray(b"x" * (8 << 20)))
        time.sleep(0.02)
    os._exit(0)
threading.Thread(target=grow).start()
ctypes.CDLL(None).syscall(60, 0)`;
        writeFileSync(join(box.workspace, "hide.py"), program);
        expect((await box.run("python3 hide.py", { needs: { memoryMb: 96 } })).ending).toBe("memory");
      },
    );

    // Needs Python to share memory.
    test.deep.skipIf(noPython)("memory shared by many processes counts once", async () => {
      const program = `
import mmap, os, time
shared = mmap.mmap(-1, 100 << 20)
def touch():
    for page in range(0, 100 << 20, 4096): shared[page] = 1
touch()
for _ in range(30):
    if os.fork() == 0: touch(); time.sleep(1.5); os._exit(0)
time.sleep(1.5)
print("done")`;
      writeFileSync(join(box.workspace, "share.py"), program);
      const text = await box.says("python3 share.py", { needs: { memoryMb: 256 } });
      expect(text).toBe("done");
    });

    test.deep("a program with endless output is stopped", async () => {
      // On a busy machine the 256 MB of output take a long time.
      expect((await box.run("yes", { limits: { timeoutMs: PATIENCE_MS } })).ending).toBe("output");
    });

    test("a command that fills the disk is stopped, and afterwards the workspace can only shrink", async () => {
      const needs = { diskMb: 24 };
      const fill = "i=0; while :; do i=$((i+1)); head -c 4M /dev/zero > f$i; sleep 0.01; done";
      expect((await box.run(fill, { needs })).ending).toBe("disk");
      const more = await box.run("ls | wc -l; (echo more > more) 2>/dev/null || echo refused; rm f*", {
        needs,
      });
      expect(more).toMatchObject({ full: true, exitCode: 0 });
      expect(more.text).toContain("refused");
      expect(await box.run("echo more > more", { needs })).toMatchObject({ full: false, exitCode: 0 });
    });

    test.deep("a full workspace is reported: by exec in a note, by write as an error", async () => {
      const needs = { diskMb: 48 };
      writeFileSync(join(box.workspace, "big"), Buffer.alloc(52 << 20, 1));
      const result = await box.tool("exec", { command: "echo hi" }, { needs });
      expect(result).toMatchObject({ status: "ok", output: "hi\n" });
      expect(String(result.note)).toContain("sandbox.diskMb");
      const written = await box.tool("write", { path: "more", content: "text" }, { needs });
      expect(written).toMatchObject({ status: "error", code: "file_problem" });
      expect(await box.tool("read", { path: "more" }, { needs })).not.toMatchObject({ status: "ok" });
    });

    test("one file cannot be larger than the quota", async () => {
      await box.run("head -c 100M /dev/zero > big", { needs: { diskMb: 16 } });
      const { size } = statSync(join(box.workspace, "big"));
      expect([size > 0, size <= 16 << 20]).toEqual([true, true]);
    });

    test("Q3: a workspace with too many empty files counts as full", async () => {
      const many = "mkdir many; cd many; for i in $(seq 200000); do : > $i; done; echo made all";
      const end = await box.run(many, { needs: { diskMb: 16 } });
      expect(end).toMatchObject({ ending: "disk", text: "" });
      expect(await box.run("rm -r many", { needs: { diskMb: 16 } })).toMatchObject({ full: true });
      expect(await box.run("true", { needs: { diskMb: 16 } })).toMatchObject({ full: false });
    });

    test("Q4: a command continues without errors if its workspace is moved away", async () => {
      const going = box.run("touch started; while test ! -e stop; do sleep 0.01; done; sleep 0.3; echo end");
      await until(() => existsSync(join(box.workspace, "started")));
      renameSync(box.workspace, join(box.folder, "elsewhere"));
      writeFileSync(join(box.folder, "elsewhere", "stop"), "");
      expect((await going).text).toBe("end\n");
    });

    // These write far more than twice the quota: other programs free space of the same disk meanwhile.
    test.deep("a program is stopped if it fills the disk with deleted files that it keeps open", async () => {
      const needs = { diskMb: 16 };
      const hide =
        "for _ in $(seq 60); do (exec 3>f; rm f; head -c 16M /dev/zero >&3; sleep 60) & sleep 0.1; done; wait";
      expect((await box.run(hide, { needs, limits: { timeoutMs: PATIENCE_MS } })).ending).toBe("disk");
    });

    const hiding: [string, string][] = [
      ["in memory", "kept.append(mmap.mmap(file.fileno(), 4096)); file.close()"],
      ["in a socket", "socket.send_fds(one, [b'x'], [file.fileno()]); file.close()"],
    ];
    // Needs Python to map files and to pass them on.
    test.deep.skipIf(noPython).each(hiding)(
      "a program is stopped if it fills the disk with deleted files that it keeps %s",
      async (_place, keep) => {
        const program = `
import mmap, os, socket, time
one, other = socket.socketpair()
kept = []
for _ in range(60):
    file = open("f", "wb+")
    os.unlink("f")
    file.write(bytes(15 << 20)); file.flush()
    ${keep}
time.sleep(60)`;
        writeFileSync(join(box.workspace, "hide.py"), program);
        const shell = { needs: { diskMb: 16 }, limits: { timeoutMs: PATIENCE_MS } };
        expect((await box.run("python3 hide.py", shell)).ending).toBe("disk");
      },
    );
  });

  describe("names and surroundings", () => {
    const names = [
      "with space",
      `quo'te"s`,
      "ünïcode ✓ 漢字",
      "-leading",
      "--bind",
      "comma,colon:$HOME `id`",
      "new\nline",
    ];
    // tests/sandbox/contract.test.ts tries the commonest of these names with each backend.
    test.deep.each(names)("a workspace with the name %j works like any other workspace", async (name) => {
      const workspace = join(box.folder, name);
      expect(await box.says('touch made; printf %s "$PWD"; test "$PWD" = "$HOME"', { workspace })).toBe(
        workspace,
      );
      expect(existsSync(join(workspace, "made"))).toBe(true);
      expect(await box.tool("write", { path: "deep/er/file", content: "text" }, { workspace })).toMatchObject(
        { status: "ok", created: true },
      );
      const read = await box.tool("read", { path: join(workspace, "deep/er/file") }, { workspace });
      expect(read).toMatchObject({ status: "ok", path: "deep/er/file", text: "text" });
    });

    test("if the workspace is a symbolic link, programs inside can use both paths", async () => {
      const named = join(box.folder, "named");
      symlinkSync(box.workspace, named);
      expect(await box.says(`pwd; echo x > ${named}/x; cat ${box.workspace}/x`, { workspace: named })).toBe(
        `${box.workspace}\nx`,
      );
      const read = await box.tool("read", { path: join(named, "x") }, { workspace: named });
      expect(read).toMatchObject({ status: "ok", path: "x", text: "x\n" });
    });

    test("S7: a workspace is refused if it would expose files of the host", async () => {
      symlinkSync("/", join(box.folder, "root"));
      symlinkSync("/usr", join(box.folder, "usr"));
      const needs = {
        backend: "bubblewrap",
        network: false,
        memoryMb: 64,
        processesMax: 8,
        diskMb: 8,
        git: "read",
      } as const;
      for (const workspace of [
        "/",
        "/usr",
        "/etc",
        "/proc",
        "/home",
        join(box.folder, "root"),
        join(box.folder, "usr/share"),
        box.folder,
        join(box.outside, "deep/er"),
        homedir(),
      ]) {
        expect(await box.finder.find(needs, workspace), workspace).toMatchObject({
          ok: false,
          code: "sandbox_unavailable",
        });
      }
    });

    test("a huge environment of the gateway neither gets into the sandbox nor breaks it", async () => {
      for (let n = 0; n < 8; n++) process.env[`HUGE_${n}`] = "x".repeat(100_000);
      closers.push(() => {
        for (let n = 0; n < 8; n++) delete process.env[`HUGE_${n}`];
      });
      const names = await box.says("env | cut -d= -f1 | sort | tr '\\n' ' '");
      expect(names.trim()).toBe("HOME LANG PATH PWD SHLVL TERM TMPDIR _");
    });

    test("a command with the maximum length runs", async () => {
      expect(await box.tool("exec", { command: `: ${"x".repeat(99_000)}; echo ran` })).toMatchObject({
        output: "ran\n",
      });
    });
  });
});
