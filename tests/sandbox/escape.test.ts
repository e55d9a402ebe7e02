// Ways out of a sandbox that hostile commands try, each of them tried here. Every bomb is bounded by a limit.
// Nothing here writes to the kernel's settings but their own value, so that a leak can do no harm.

import { spawn } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Box, running, until, whyNot } from "./kit.ts";

const NODE = "/run/parley/node";
const missing = await whyNot("bubblewrap");

// Where bubblewrap does not work there is nothing to escape from; whyNot has said so, and fails in CI.
describe.skipIf(missing !== undefined)("bubblewrap", () => {
  let box: Box;
  let secret: string;
  const closers: (() => void)[] = [];
  let marker: string;
  let tests = 0;

  beforeEach(() => {
    box = new Box();
    mkdirSync(box.workspace);
    mkdirSync(box.outside);
    secret = join(box.outside, "token");
    writeFileSync(secret, "s3cret");
    tests += 1;
    // A number of seconds to sleep that nobody else on this machine sleeps.
    marker = `86400.${process.pid}${String(tests).padStart(3, "0")}`;
  });
  afterEach(() => {
    for (const close of closers.splice(0)) close();
    for (const pid of running(marker)) process.kill(pid, "SIGKILL");
    box.remove();
  });

  const listening = (server: Server, at: { port: number; host: string } | { path: string }): Promise<void> =>
    new Promise((done) => {
      closers.push(() => server.close());
      server.listen(at, done);
    });

  describe("S1, S2: files", () => {
    test("a symbolic link leads nowhere outside, whatever follows it: exec, read, write, edit", async () => {
      symlinkSync(secret, join(box.workspace, "link"));
      symlinkSync(box.outside, join(box.workspace, "folder"));
      const tried = await box.run(
        "cat link; cat folder/token; echo x > link; echo x > folder/new; ls -d folder/",
      );
      expect(tried.text).not.toContain("s3cret");
      for (const path of ["link", "folder/token", secret, "../outside/token"]) {
        const results = [
          await box.tool("read", { path }),
          await box.tool("write", { path, content: "x" }),
          await box.tool("edit", { path, oldText: "s3cret", newText: "x" }),
        ];
        for (const result of results) expect(result.status).not.toBe("ok");
        expect(JSON.stringify(results)).not.toContain("s3cret");
      }
      expect(readFileSync(secret, "utf8")).toBe("s3cret");
      expect(existsSync(join(box.outside, "new"))).toBe(false);
      expect(await box.tool("write", { path: "own", content: "mine" })).toMatchObject({ status: "ok" });
      expect(await box.tool("read", { path: "own" })).toMatchObject({ status: "ok", text: "mine" });
    });

    test("a link made inside, to a folder of the host, is followed inside only", async () => {
      await box.says(`ln -s ${box.outside} out; ln -s /etc/shadow shadow; ln -s /proc/1/root root`);
      for (const path of ["out/token", "shadow", `root${secret}`]) {
        expect((await box.tool("read", { path })).status).not.toBe("ok");
      }
      expect(await box.tool("write", { path: "out/new", content: "x" })).not.toMatchObject({ status: "ok" });
      expect(existsSync(join(box.outside, "new"))).toBe(false);
    });

    test("a folder that is swapped for a link while the file tools work misleads nobody", async () => {
      mkdirSync(join(box.workspace, "real"));
      writeFileSync(join(box.workspace, "real/token"), "harmless");
      symlinkSync(box.outside, join(box.workspace, "evil"));
      const stop = new AbortController();
      const swap = `while :; do mv -T real d; mv -T d real; mv -T evil d; mv -T d evil; done # ${marker}`;
      const swapping = box.run(swap, { limits: { signal: stop.signal } });
      await until(() => running(marker).length > 0);
      for (let round = 0; round < 6; round++) {
        const read = await box.tool("read", { path: "d/token" });
        expect(JSON.stringify(read)).not.toContain("s3cret");
        await box.tool("write", { path: "d/token", content: `round ${round}` });
      }
      stop.abort();
      expect((await swapping).ending).toBe("aborted");
      expect(readFileSync(secret, "utf8")).toBe("s3cret");
    });

    test("no hard link can be made to what is outside the workspace", async () => {
      const tried = await box.run(
        "ln /usr/bin/env here; echo $?; ln /etc/passwd here; echo $?; touch a; ln a /tmp/a; echo $?",
      );
      expect(tried.text.match(/^1$/gm)).toHaveLength(3);
      expect(existsSync(join(box.workspace, "here"))).toBe(false);
    });

    test("a hard link that somebody outside put into the workspace is a file of the workspace, by the host's choice", async () => {
      linkSync(secret, join(box.workspace, "given"));
      expect(await box.says("cat given")).toBe("s3cret");
    });

    test("the gateway's store, its token and every home are not there", async () => {
      const tried = await box.run(
        `cat ${secret}; ls ${box.outside}; ls ~root /home/*; ls -A / /home /root /var /mnt /opt /srv`,
      );
      expect(tried.text).not.toContain("s3cret");
      expect(tried.text).not.toContain("token\n");
      expect(await box.says("ls -A / | tr '\\n' ' '")).toMatch(/^[\w ]*$/);
      expect(
        await box.says("for d in /home /root /var /boot /sys /opt /mnt; do test ! -e $d || ls -A $d; done"),
      ).toBe("");
      expect(await box.says(`ls -A ${box.folder}`)).toBe("workspace");
      expect(await box.says("cat ~/.ssh/* /etc/shadow /etc/sudoers /etc/ssh/* 2>/dev/null | wc -c")).toBe(
        "0",
      );
    });

    test("nothing but the workspace, /tmp, /dev/shm and the harmless devices can be written", async () => {
      const places =
        "/usr /etc /bin /lib /run /run/parley /run/parley/code /dev /proc /proc/sys / /usr/local/bin";
      const tried = await box.says(
        `for d in ${places}; do (echo x > $d/x) 2>/dev/null && echo wrote $d; done; echo done`,
      );
      expect(tried).toBe("done");
      expect(await box.says(`echo x >> ${NODE} || echo no; echo x >> /etc/passwd || echo no`)).toMatch(
        /no\n[\s\S]*no$/,
      );
      expect(
        await box.says("echo a > /tmp/a; echo b > /dev/shm/b; echo c > c; cat /tmp/a /dev/shm/b c"),
      ).toBe("a\nb\nc");
      expect(await box.says("test ! -e /tmp/a -a ! -e /dev/shm/b -a -e c && echo fresh")).toBe("fresh");
    });

    test("an open file that the gateway was started with is closed inside", async () => {
      const script = `exec 9< ${box.outside}; exec "$@"`;
      const code = helper(
        `console.log(await box.says("ls /proc/self/fd; ls /proc/self/fd/9/ 2>/dev/null || echo none"));`,
      );
      const child = spawn("bash", [
        "-c",
        script,
        "bash",
        process.execPath,
        "--input-type=module",
        "-e",
        code,
      ]);
      let text = "";
      child.stdout.on("data", (chunk: Buffer) => {
        text += chunk;
      });
      await new Promise((done) => child.once("close", done));
      expect(text.trim()).toBe("0\n1\n2\n3\nnone");
    });
  });

  describe("S2, S4: processes and privileges", () => {
    test("/proc shows its own processes only, and /proc/1 is one of them", async () => {
      const outside = spawn("sleep", [marker], { env: { ...process.env, PLANTED: "s3cret" } });
      closers.push(() => outside.kill("SIGKILL"));
      process.env.PLANTED = "s3cret";
      closers.push(() => delete process.env.PLANTED);
      expect(Number(await box.says("ls /proc | grep -c '^[0-9]'"))).toBeLessThan(8);
      expect(
        await box.says(
          "cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n' | grep -e s3cre[t] -e 8640[0]. || echo none",
        ),
      ).toBe("none");
      expect(
        await box.says(`cat /proc/1/root${secret} /proc/1/cwd/../outside/token 2>/dev/null || echo none`),
      ).toBe("none");
    });

    test("a process outside can be neither seen, signalled nor traced", async () => {
      const outside = spawn("sleep", [marker]);
      closers.push(() => outside.kill("SIGKILL"));
      await until(() => running(marker).length > 0);
      const pid = String(outside.pid);
      const tried = await box.run(
        `kill -0 ${pid}; echo $?; kill -9 ${pid}; echo $?; cat /proc/${pid}/mem; echo $?; kill -9 -1; echo alive`,
      );
      expect(tried.text.match(/^1$/gm)).toHaveLength(3);
      expect(running(marker)).toEqual([outside.pid]);
    });

    test("the kernel's settings can't be written, whoever the gateway runs as", async () => {
      const same =
        'v=$(cat /proc/sys/kernel/core_pattern); (echo "$v" > /proc/sys/kernel/core_pattern) 2>/dev/null || echo no';
      expect(await box.says(same)).toBe("no");
      expect(await box.says("find /proc/sys /proc/irq /proc/fs -type f -writable 2>/dev/null; true")).toBe(
        "",
      );
    });

    test("there are no capabilities, no new privileges, a filter on system calls, and one user who is nobody special", async () => {
      const status = await box.says("cat /proc/self/status; id -u");
      expect(status.match(/^Cap\w+:\s+0+$/gm)).toHaveLength(5);
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      if (["x64", "arm64"].includes(process.arch)) expect(status).toMatch(/^Seccomp:\s+2$/m);
      expect(status).toMatch(/\n1000$/);
    });

    test("a setuid program gives nobody's rights: no mount allows it, and it runs as who called it", async () => {
      copyFileSync("/usr/bin/id", join(box.workspace, "id"));
      chmodSync(join(box.workspace, "id"), 0o6755);
      expect(await box.says("./id -u; ./id -ru; ./id -g")).toBe("1000\n1000\n1000");
      expect(await box.says("grep -v nosuid /proc/self/mounts || true")).toBe("");
    });

    test("mounts, namespaces, device nodes and chroot are refused", async () => {
      const tries = [
        "mount -t tmpfs none /tmp",
        "mount --bind /usr /tmp",
        "mount -o remount,rw /usr",
        "umount /proc/sys",
        "unshare --user true",
        "unshare --mount true",
        "unshare --net true",
        "nsenter --target 1 --mount true",
        "mknod disk b 8 0",
        "chroot . /bin/true",
        "setpriv --reuid 0 true",
        "chown 0 /tmp",
      ];
      const tried = await box.says(
        `${tries.map((one) => `(${one}) >/dev/null 2>&1 && echo "did: ${one}"`).join("; ")}; echo done`,
      );
      expect(tried).toBe("done");
    });

    test("it has no terminal to push keys into, not even the gateway's", async () => {
      expect(await box.says("(exec 3<>/dev/tty) 2>/dev/null || echo none; readlink /proc/self/fd/0")).toBe(
        "none\n/dev/null",
      );
    });

    test.runIf(process.arch === "x64" && existsSync("/usr/bin/python3"))(
      "key rings and memory that no process owns are refused as an older kernel would", // Needs Python to make raw system calls.
      async () => {
        const calls =
          "import ctypes; c=ctypes.CDLL(None,use_errno=True); print([(c.syscall(n,0,0,0,0,0),ctypes.get_errno()) for n in (250,319,29,321,425)])";
        expect(await box.says(`python3 -c '${calls}'`)).toBe(
          JSON.stringify(Array(5).fill("x")).replaceAll('"x"', "(-1, 38)").replaceAll(",(", ", ("),
        );
      },
    );
  });

  describe("S3: network", () => {
    test("a port of this machine's loopback and an abstract socket can't be reached", async () => {
      const [tcp, abstract] = [createServer(), createServer()];
      let met = 0;
      for (const server of [tcp, abstract])
        server.on("connection", (socket) => {
          met += 1;
          socket.destroy();
        });
      await listening(tcp, { port: 0, host: "127.0.0.1" });
      const name = `parley-test-${marker}`;
      await listening(abstract, { path: `\0${name}` });
      const port = (tcp.address() as { port: number }).port;
      const dial = `require("net").connect({path:"\\0${name}"}).on("error",()=>console.log("no")).on("connect",()=>console.log("met"))`;
      const tried = await box.says(
        `(exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null || echo no; ${NODE} -e '${dial}'`,
      );
      expect(tried).toBe("no\nno");
      expect(met).toBe(0);
      expect(await box.says("grep -vc lo: /proc/net/dev")).toBe("2");
    });

    test("with network: true the loopback is the host's, and still no file of the gateway is there", async () => {
      const server = createServer((socket) => socket.end("hello\n"));
      await listening(server, { port: 0, host: "127.0.0.1" });
      const { port } = server.address() as { port: number };
      const command = `cat < /dev/tcp/127.0.0.1/${port}; cat ${secret} 2>/dev/null || echo none`;
      expect(await box.says(command, { needs: { network: true } })).toBe("hello\nnone");
    });
  });

  describe("S5: what ends", () => {
    test("a process in the background, in a session of its own, is gone when the answer comes", async () => {
      const text = await box.says(
        `setsid nohup sleep ${marker} >/dev/null 2>&1 & (sleep ${marker} &) ; echo started`,
      );
      expect(text).toBe("started");
      expect(running(marker)).toEqual([]);
    });

    test("an abort leaves nothing: by the time it is answered every process has ended", async () => {
      const stop = new AbortController();
      const going = box.run(`trap '' TERM HUP INT; setsid sleep ${marker} & sleep ${marker}`, {
        limits: { signal: stop.signal },
      });
      await until(() => running(`sleep\0${marker}`).length === 2);
      stop.abort();
      expect((await going).ending).toBe("aborted");
      expect(running(marker)).toEqual([]);
    });

    test("an abort in the first moment leaves nothing either", async () => {
      for (let round = 0; round < 10; round++) {
        const stop = new AbortController();
        const going = box.run(`sleep ${marker}`, { limits: { signal: stop.signal } });
        for (let turn = 0; turn < round * 3; turn++) await new Promise((resolve) => setImmediate(resolve));
        stop.abort();
        expect((await going).ending).toBe("aborted");
        expect(running(marker)).toEqual([]);
      }
    });

    test("when the gateway is killed, what it ran contained ends with it", async () => {
      const code = helper(`await box.run("sleep ${marker} & setsid sleep ${marker}");`);
      const gateway = spawn(process.execPath, ["--input-type=module", "-e", code]);
      await until(() => running(`sleep\0${marker}`).length === 2);
      gateway.kill("SIGKILL");
      await until(() => running(marker).length === 0);
    });

    test("time that is over ends it and all that it started", async () => {
      const end = await box.run(`sleep ${marker} & echo before; sleep ${marker}`, {
        limits: { timeoutMs: 400 },
      });
      expect(end).toMatchObject({ ending: "timeout", text: "before\n" });
      expect(running(marker)).toEqual([]);
    });
  });

  describe("S6: limits", () => {
    test("a fork bomb runs into its limit and is cleared away", async () => {
      const bomb = `bomb() { bomb | bomb & }; bomb 2>/dev/null; echo ${marker} >/dev/null; sleep 3`;
      const end = await box.run(bomb, { needs: { processesMax: 32 }, limits: { timeoutMs: 8_000 } });
      expect(["processes", "ended"]).toContain(end.ending);
      expect(running(marker)).toEqual([]);
    });

    test("one process can't take more memory than its limit, and many together can't either", async () => {
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

    test("temporary files are bounded", async () => {
      const command = "i=0; while head -c 8M /dev/zero > /tmp/f$i 2>/dev/null; do i=$((i+1)); done; echo $i";
      expect(Number(await box.says(command, { needs: { memoryMb: 64 } }))).toBeLessThan(5);
      const shm = "i=0; while head -c 8M /dev/zero > /dev/shm/f$i 2>/dev/null; do i=$((i+1)); done; echo $i";
      expect(Number(await box.says(shm))).toBeLessThan(9);
    });

    test("endless output is stopped", async () => {
      expect((await box.run("yes")).ending).toBe("output");
    });

    test("a command that fills the disk is stopped, and then the workspace can only shrink", async () => {
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

    test("a full workspace says so to the tools: exec in a note, write as an error", async () => {
      const needs = { diskMb: 8 };
      writeFileSync(join(box.workspace, "big"), Buffer.alloc(12 << 20, 1));
      const result = await box.tool("exec", { command: "echo hi" }, { needs });
      expect(result).toMatchObject({ status: "ok", output: "hi\n" });
      expect(String(result.note)).toContain("sandbox.diskMb");
      const written = await box.tool("write", { path: "more", content: "text" }, { needs });
      expect(written).toMatchObject({ status: "error", code: "file_problem" });
      expect(await box.tool("read", { path: "more" }, { needs })).not.toMatchObject({ status: "ok" });
    });

    test("one file can't be larger than the quota", async () => {
      const end = await box.run("head -c 100M /dev/zero > big; stat -c %s big", { needs: { diskMb: 16 } });
      expect(Number(end.text.trim().split("\n").at(-1) || 0)).toBeLessThanOrEqual(16 << 20);
    });

    test("a disk that is filled by files which are deleted and still open is seen too", async () => {
      const needs = { diskMb: 16 };
      const hide =
        'for n in 3 4 5 6 7 8 9; do eval "exec $n>f"; rm f; head -c 16M /dev/zero >&$n; done; sleep 20';
      expect((await box.run(hide, { needs })).ending).toBe("disk");
    });
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
    test.each(names)("a workspace named %j works like any other", async (name) => {
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

    test("a workspace that is itself a link has both of its names inside", async () => {
      const named = join(box.folder, "named");
      symlinkSync(box.workspace, named);
      expect(await box.says(`pwd; echo x > ${named}/x; cat ${box.workspace}/x`, { workspace: named })).toBe(
        `${box.workspace}\nx`,
      );
      const read = await box.tool("read", { path: join(named, "x") }, { workspace: named });
      expect(read).toMatchObject({ status: "ok", path: "x", text: "x\n" });
    });

    test("S7: a workspace that would bring the host in is refused", async () => {
      symlinkSync("/", join(box.folder, "root"));
      symlinkSync("/usr", join(box.folder, "usr"));
      const needs = {
        backend: "bubblewrap",
        network: false,
        memoryMb: 64,
        processesMax: 8,
        diskMb: 8,
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
      ]) {
        expect(await box.finder.find(needs, workspace), workspace).toMatchObject({
          ok: false,
          code: "sandbox_unavailable",
        });
      }
    });

    test("a huge environment of the gateway neither gets in nor in the way", async () => {
      for (let n = 0; n < 8; n++) process.env[`HUGE_${n}`] = "x".repeat(100_000);
      closers.push(() => {
        for (let n = 0; n < 8; n++) delete process.env[`HUGE_${n}`];
      });
      const names = await box.says("env | cut -d= -f1 | sort | tr '\\n' ' '");
      expect(names.trim()).toBe("HOME LANG PATH PWD SHLVL TERM TMPDIR _");
    });

    test("a command at the limit of its length runs", async () => {
      expect(await box.tool("exec", { command: `: ${"x".repeat(99_000)}; echo ran` })).toMatchObject({
        output: "ran\n",
      });
    });
  });

  /** A program that makes this test's sandbox in a process of its own. */
  function helper(body: string): string {
    const kit = fileURLToPath(new URL("../../src/sandbox/find.ts", import.meta.url));
    const world = fileURLToPath(new URL("../../src/world.ts", import.meta.url));
    return `
      import { createSandboxFinder } from ${JSON.stringify(kit)};
      import { realWorld } from ${JSON.stringify(world)};
      const finder = createSandboxFinder({ world: realWorld({ level: "silent" }), keepOut: [] });
      const needs = { backend: "bubblewrap", network: false, memoryMb: 256, processesMax: 64, diskMb: 64 };
      const found = await finder.find(needs, ${JSON.stringify(box.workspace)});
      const limits = { timeoutMs: 20_000, outputMaxBytes: 9_999, signal: new AbortController().signal };
      const box = {
        run: (command) => found.value.run({ kind: "shell", command }, limits),
        says: async (command) => (await box.run(command)).value.output.read().text,
      };
      ${body}`;
  }
});
