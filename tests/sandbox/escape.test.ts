// Hostile commands try to escape from a sandbox. If one succeeds, it must do no harm: commands that use up
// processes or memory have a limit, and a kernel setting is only overwritten with its current value.

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
import { afterEach, beforeEach, describe, expect } from "vitest";
import { SENT_FILE_MAX_BYTES } from "../../src/core/sent-file.ts";
import { quick, test } from "../kit/deep.ts";
import { lacks } from "../kit/process/lacks.ts";
import { until } from "../kit/until.ts";
import { Box, gatewayProgram, running, whyNot } from "./kit.ts";

const NODE = "/run/parley/node";
const missing = await whyNot("bubblewrap");
const noPython = lacks("python3", existsSync("/usr/bin/python3"));
const noX64 = lacks("an x64 processor", process.arch === "x64");
const noFilter = lacks("an x64 or arm64 processor", ["x64", "arm64"].includes(process.arch));

// Skipped if bubblewrap does not work here; `whyNot` reports the reason, and fails in CI.
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
    // A sleep time in seconds that no other process on this machine uses, to find the test's processes.
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
    test("exec, read, write and edit never follow a symbolic link to a file outside", async () => {
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
          await box.tool("edit", { path, edits: [{ oldText: "s3cret", newText: "x" }] }),
        ];
        for (const result of results) expect(result.status).not.toBe("ok");
        expect(await box.take(path, 1_000)).toMatchObject({ ok: false });
        expect(JSON.stringify(results)).not.toContain("s3cret");
      }
      expect(readFileSync(secret, "utf8")).toBe("s3cret");
      expect(existsSync(join(box.outside, "new"))).toBe(false);
      expect(await box.tool("write", { path: "own", content: "mine" })).toMatchObject({ status: "ok" });
      expect(await box.tool("read", { path: "own" })).toMatchObject({ status: "ok", text: "mine" });
    });

    test("a link to a folder of the host is resolved inside the sandbox, not on the host", async () => {
      await box.says(`ln -s ${box.outside} out; ln -s /etc/shadow shadow; ln -s /proc/1/root root`);
      for (const path of ["out/token", "shadow", `root${secret}`]) {
        expect((await box.tool("read", { path })).status).not.toBe("ok");
      }
      expect(await box.tool("write", { path: "out/new", content: "x" })).not.toMatchObject({ status: "ok" });
      expect(existsSync(join(box.outside, "new"))).toBe(false);
    });

    test.deep(
      "if a folder is replaced by a link while the file tools work, they reach no file outside",
      async () => {
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
      },
    );

    test.deep("send_file reads a file of the maximum size inside the sandbox", async () => {
      const bytes = Buffer.alloc(SENT_FILE_MAX_BYTES, "tea");
      writeFileSync(join(box.workspace, "large"), bytes);
      const taken = await box.take("large", SENT_FILE_MAX_BYTES);
      expect(taken.ok && Buffer.from(taken.value.content, "base64").equals(bytes)).toBe(true);
      expect(await box.take("large", SENT_FILE_MAX_BYTES - 1)).toMatchObject({ code: "too_large" });
    });

    test("a hard link to a file outside the workspace cannot be created", async () => {
      const tried = await box.run(
        "ln /usr/bin/env here; echo $?; ln /etc/passwd here; echo $?; touch a; ln a /tmp/a; echo $?",
      );
      expect(tried.text.match(/^1$/gm)).toHaveLength(3);
      expect(existsSync(join(box.workspace, "here"))).toBe(false);
    });

    test("a hard link that the host created in the workspace is a normal file of the workspace", async () => {
      linkSync(secret, join(box.workspace, "given"));
      expect(await box.says("cat given")).toBe("s3cret");
    });

    test("the gateway's store, its token and every home are invisible inside", async () => {
      const tried = await box.run(
        `cat ${secret}; ls ${box.outside}; ls ~root /home/*; ls -A / /home ~root /var /mnt /opt /srv`,
      );
      expect(tried.text).not.toContain("s3cret");
      expect(tried.text).not.toContain("token\n");
      expect(await box.says("ls -A / | tr '\\n' ' '")).toMatch(/^[\w ]*$/);
      expect(
        await box.says("for d in /home ~root /var /boot /sys /opt /mnt; do test ! -e $d || ls -A $d; done"),
      ).toBe("");
      expect(await box.says(`ls -A ${box.folder}`)).toBe("workspace");
      expect(await box.says("cat ~/.ssh/* /etc/shadow /etc/sudoers /etc/ssh/* 2>/dev/null | wc -c")).toBe(
        "0",
      );
    });

    test("only the workspace, /tmp, /dev/shm and harmless devices are writable", async () => {
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

    test("a sandboxed program has no access to files that the gateway inherited as open", async () => {
      const script = `exec 9< ${box.outside}; exec "$@"`;
      const code = gatewayProgram(
        box,
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

  quick(describe)("S2, S4: processes and privileges", () => {
    test("/proc shows only the processes of the sandbox, and /proc/1 is one of them", async () => {
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

    test("a process outside the sandbox cannot be seen, signalled or traced", async () => {
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

    test("kernel settings cannot be written, even if root runs the gateway", async () => {
      const same =
        'v=$(cat /proc/sys/kernel/core_pattern); (echo "$v" > /proc/sys/kernel/core_pattern) 2>/dev/null || echo no';
      expect(await box.says(same)).toBe("no");
      expect(await box.says("find /proc/sys /proc/irq /proc/fs -type f -writable 2>/dev/null; true")).toBe(
        "",
      );
    });

    test("SV2: of the machine's files in /proc, only harmless ones and readable settings are visible", async () => {
      const whole = "for p in /proc/[!0-9]*; do test -L $p";
      const files = await box.says(`${whole} || { test -f $p && stat -c %a $p; }; done; true`);
      expect([...new Set(files.split("\n"))]).toEqual(["444"]);
      const folders = await box.says(`${whole} || { test -d $p && test "$(ls $p)" && echo $p; }; done; true`);
      expect(folders).toBe("/proc/sys\n/proc/sysvipc");
      expect(await box.says("cat /proc/cmdline /proc/kallsyms /proc/keys 2>/dev/null | wc -c")).toBe("0");
    });

    test("programs run as an ordinary user without capabilities, cannot gain privileges, and have a system call filter", async () => {
      const status = await box.says("cat /proc/self/status; id -u");
      expect(status.match(/^Cap\w+:\s+0+$/gm)).toHaveLength(5);
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      if (["x64", "arm64"].includes(process.arch)) expect(status).toMatch(/^Seccomp:\s+2$/m);
      expect(status).toMatch(/\n1000$/);
    });

    test("a setuid program gives no rights, because mounts forbid it and it runs as its caller", async () => {
      copyFileSync("/usr/bin/id", join(box.workspace, "id"));
      chmodSync(join(box.workspace, "id"), 0o6755);
      expect(await box.says("./id -u; ./id -ru; ./id -g")).toBe("1000\n1000\n1000");
      expect(await box.says("grep -v nosuid /proc/self/mounts || true")).toBe("");
    });

    // The system call filter knows only the numbers of these processor architectures.
    test.skipIf(noFilter)(
      "a sandboxed program cannot create a file with a setuid or setgid bit",
      async () => {
        const tries = [
          "chmod u+s f",
          "chmod g+s f",
          "chmod 4755 f",
          "install -m 6755 f g",
          "mknod -m 4755 p p",
          "cp -p $PWD/set h && test ! -u h",
          "python3 unnamed.py",
        ];
        // Creates a file without a name and sets its mode before the file gets a name.
        const unnamed = [
          "import ctypes, os",
          "fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755)",
          "ctypes.CDLL(None).linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'unnamed', 0x400)",
        ];
        writeFileSync(join(box.workspace, "unnamed.py"), unnamed.join("\n"));
        chmodSync(join(box.workspace), 0o755);
        writeFileSync(join(box.workspace, "set"), "");
        chmodSync(join(box.workspace, "set"), 0o4755);
        await box.run(`touch f; ${tries.map((one) => `(${one})`).join("; ")}`);
        const node = `require("fs").openSync("o", "w", 0o4755)`;
        expect((await box.run(`${NODE} -e '${node}'`)).text).toContain("EPERM");
        expect(await box.says("chmod 0755 f; chmod 1777 f; find . -perm /6000")).toBe("./set");
      },
    );

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

    test("no terminal accepts injected key presses, not even the gateway's", async () => {
      expect(await box.says("(exec 3<>/dev/tty) 2>/dev/null || echo none; readlink /proc/self/fd/0")).toBe(
        "none\n/dev/null",
      );
    });

    // Needs Python to make raw system calls.
    test.skipIf(noPython || noX64)(
      "system calls for key rings and for memory without an owner fail as if the kernel did not have them",
      async () => {
        const numbers = [29, 64, 68, 103, 248, 249, 250, 298, 319, 321, 323, 425, 437, 447];
        const library = "import ctypes; c = ctypes.CDLL(None, use_errno=True)";
        const calls = `print([(c.syscall(n, 0, 0, 0, 0, 0), ctypes.get_errno()) for n in ${JSON.stringify(numbers)}])`;
        const answers = `[${numbers.map(() => "(-1, 38)").join(", ")}]`;
        expect(await box.says(`python3 -c '${library}; ${calls}'`)).toBe(answers);
      },
    );
  });

  quick(describe)("S3: network", () => {
    // Needs Python to open sockets of any family.
    test.skipIf(noPython)(
      "SC4: sockets that ignore network namespaces are refused, for example those of a virtual machine to its host",
      async () => {
        const tries = [1, 2, 10, 16, 30, 31, 38, 40, 42];
        const program = `
import socket
for family in ${JSON.stringify(tries)}:
    try: print(family, bool(socket.socket(family, socket.SOCK_RAW if family == 16 else socket.SOCK_STREAM)))
    except OSError as error: print(family, error.errno)`;
        writeFileSync(join(box.workspace, "sockets.py"), program);
        for (const network of [false, true]) {
          expect(await box.says("python3 sockets.py", { needs: { network } })).toBe(
            "1 True\n2 True\n10 True\n16 True\n30 97\n31 97\n38 97\n40 97\n42 97",
          );
        }
      },
    );

    test("a port on this machine's loopback address and an abstract socket are unreachable", async () => {
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
  });
});
