// The gateway as a system service: the unit file, the commands that are executed (with a fake systemctl that
// keeps its state in files), and paths with characters that systemd or XML would interpret.

import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { type CallOptions, run } from "../../cli/kit.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { lacks } from "../../kit/process/lacks.ts";

/**
 * Fake systemctl and loginctl, which record calls and state. If their folder has a file `no-bus`, they
 * find no service manager. Subcommands in a file `fails` exit with an error.
 */
const FAKE = `#!/bin/sh
here=$(dirname "$0")
echo "$(basename "$0") $*" >> "$here/asked"
if [ -e "$here/no-bus" ]; then echo "Failed to connect to bus: No medium found" >&2; exit 1; fi
for word in "$@"; do
  if grep -qx "$word" "$here/fails" 2>/dev/null; then echo "$word was refused" >&2; exit 1; fi
done
case "$*" in
  *enable-linger*) ;;
  *"restart parley"*) touch "$here/running" ;;
  *"disable --now"*) rm -f "$here/running" "$here/enabled" ;;
  *"enable parley"*) touch "$here/enabled" ;;
  *show\\ parley*)
    if [ -e "$here/running" ]; then echo ActiveState=active; echo SubState=running; echo MainPID=4711
    else echo ActiveState=inactive; echo SubState=dead; echo MainPID=0; fi
    if [ -e "$here/enabled" ]; then echo UnitFileState=enabled; else echo UnitFileState=disabled; fi
    echo NRestarts=2 ;;
esac
`;

function place(programs: readonly string[] = ["systemctl", "loginctl"]) {
  const home = temporaryFolder();
  const bin = join(home, "bin");
  mkdirSync(bin);
  for (const name of programs) {
    writeFileSync(join(bin, name), FAKE);
    chmodSync(join(bin, name), 0o755);
  }
  const asked = () => (existsSync(join(bin, "asked")) ? readFileSync(join(bin, "asked"), "utf8") : "");
  const unit = join(home, ".config/systemd/user/parley.service");
  const keys = join(home, ".parley/service.env");
  const linux = { platform: "linux" };
  const service = (words: readonly string[], more: CallOptions = {}) =>
    run(home, words, {
      env: { PATH: `${bin}:/usr/bin:/bin`, ...more.env },
      machine: { ...linux, ...more.machine },
    });
  return { home, bin, asked, unit, keys, service };
}

test("service install writes the unit and the key file, starts the service, and prints each command that it runs", async () => {
  const { service, unit, keys, asked } = place();
  const { code, out, err } = await service(["service", "install"], { env: { OPENAI_API_KEY: "sk-planted" } });
  expect({ code, err }).toEqual({
    code: 0,
    err: "Set in this shell, but not so for the service: OPENAI_API_KEY.\n",
  });
  expect(asked().split("\n")).toEqual([
    "systemctl --user show-environment",
    "systemctl --user daemon-reload",
    "systemctl --user enable parley.service",
    "systemctl --user restart parley.service",
    "loginctl enable-linger",
    "",
  ]);
  for (const line of asked().trim().split("\n").slice(1)) expect(out).toContain(`$ ${line}`);
  expect(statSync(keys).mode & 0o777).toBe(0o600);
  expect(readFileSync(unit, "utf8")).toContain(`EnvironmentFile=-${keys}\n`);
  expect(readFileSync(unit, "utf8")).not.toContain("sk-planted");
  const status = await service(["service"]);
  expect(status.code).toBe(0);
  expect(status.out).toContain("Running, process 4711: active (running), restarted 2 times");
  expect(status.out).toContain("Starts automatically");
});

test("SV4: an existing key file keeps its content and gets mode 600", async () => {
  const { service, keys } = place();
  mkdirSync(dirname(keys));
  writeFileSync(keys, "OPENAI_API_KEY=kept\n", { mode: 0o644 });
  chmodSync(keys, 0o644);
  const { code, err } = await service(["service", "install"]);
  expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining("mode is 600 now") });
  expect(readFileSync(keys, "utf8")).toBe("OPENAI_API_KEY=kept\n");
  expect(statSync(keys).mode & 0o777).toBe(0o600);
  expect((await service(["service", "uninstall"])).code).toBe(0);
  expect(readFileSync(keys, "utf8")).toBe("OPENAI_API_KEY=kept\n");
});

test("a second install replaces the unit; status reports a unit that is out of date", async () => {
  const { service, unit, home } = place();
  await service(["service", "install"]);
  const config = join(home, "my config.json5");
  const status = await service(["--config", config, "service", "status"]);
  expect(status).toMatchObject({ code: 0, err: expect.stringContaining("is outdated") });
  expect((await service(["--config", config, "service", "install"])).code).toBe(0);
  expect(readFileSync(unit, "utf8")).toContain(`"--config" "${config}" "gateway"\n`);
  expect((await service(["service", "status"], { env: { PARLEY_CONFIG: config } })).err).toBe("");
});

test("service uninstall stops the service and removes the file; status then says that it is not installed", async () => {
  const { service, unit, asked, bin } = place();
  await service(["service", "install"]);
  const removed = await service(["service", "uninstall"]);
  expect(removed).toMatchObject({ code: 0, err: "" });
  expect(existsSync(unit)).toBe(false);
  expect(existsSync(join(bin, "running"))).toBe(false);
  expect(asked().trim().split("\n").slice(-2)).toEqual([
    "systemctl --user disable --now parley.service",
    "systemctl --user daemon-reload",
  ]);
  expect(await service(["service", "uninstall"])).toMatchObject({ code: 0 });
  expect(await service(["service", "status"])).toMatchObject({
    code: 1,
    err: expect.stringContaining("npx parley-gateway service install"),
  });
});

test("--print shows the file and changes nothing, also as root", async () => {
  const { service, unit, keys, asked } = place();
  const printed = await service(["service", "install", "--print"], { machine: { userId: 0 } });
  expect(printed).toMatchObject({ code: 0, err: "" });
  expect([unit, keys].filter(existsSync)).toEqual([]);
  expect(asked()).toBe("");
  await service(["service", "install", "--no-start"]);
  expect(readFileSync(unit, "utf8")).toBe(printed.out);
});

test("--no-start writes the files and prints the command that starts the service; it needs no systemd", async () => {
  const { service, unit, keys, asked } = place([]);
  const { code, out } = await service(["service", "install", "--no-start"]);
  expect({ code, asked: asked() }).toEqual({ code: 0, asked: "" });
  expect(out).toContain("  systemctl --user enable parley.service\n");
  expect(out).toContain("  loginctl enable-linger\n");
  expect([unit, keys].every(existsSync)).toBe(true);
});

test.each(["no-bus", "no systemctl"])(
  "SV3: with %s the error is clear, and no file is written",
  async (why) => {
    const { service, unit, keys, bin, home } = place(why === "no-bus" ? undefined : []);
    writeFileSync(join(bin, "no-bus"), "");
    const empty = join(home, "nothing");
    const path = why === "no-bus" ? {} : { env: { PATH: empty } };
    const { code, err } = await service(["service", "install"], path);
    expect(code).toBe(1);
    expect(err).toMatch(/systemd does not answer for this user.*--no-start/);
    expect([unit, keys].filter(existsSync)).toEqual([]);
  },
);

test("SV2: service install refuses root, and a copy in npx's cache", async () => {
  const { service, unit } = place();
  const root = await service(["service", "install"], { machine: { userId: 0 } });
  expect(root).toMatchObject({ code: 1, err: expect.stringMatching(/you are root/) });
  const script = "/var/cache/_npx/1234/node_modules/parley-gateway/bin/parley.js";
  const cached = await service(["service", "install"], {
    machine: { launcher: { node: "/n/node", script } },
  });
  expect(cached).toMatchObject({ code: 1, err: expect.stringContaining("npm install --global") });
  expect(existsSync(unit)).toBe(false);
});

test("SV1: a unit of another program and a masked unit are neither replaced nor removed", async () => {
  const { service, unit, asked } = place();
  mkdirSync(dirname(unit), { recursive: true });
  writeFileSync(unit, "[Service]\nExecStart=/bin/true\n");
  for (const what of ["install", "uninstall", "status"]) {
    const { code, err } = await service(["service", what]);
    expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining("was not written by") });
  }
  expect(readFileSync(unit, "utf8")).toBe("[Service]\nExecStart=/bin/true\n");
  const masked = place();
  mkdirSync(dirname(masked.unit), { recursive: true });
  symlinkSync("/dev/null", masked.unit);
  expect((await masked.service(["service", "install"])).code).toBe(1);
  expect(asked() + masked.asked()).toBe("");
});

test("the output of a failed command is printed; if lingering is refused, a note says so", async () => {
  const { service, bin, unit } = place();
  writeFileSync(join(bin, "fails"), "enable-linger\n");
  const noted = await service(["service", "install"]);
  expect(noted).toMatchObject({ code: 0, err: expect.stringContaining("only while you are signed in") });
  writeFileSync(join(bin, "fails"), "restart\n");
  const failed = await service(["service", "install"]);
  expect(failed.code).toBe(1);
  expect(failed.err).toContain("systemctl --user restart parley.service: restart was refused");
  writeFileSync(join(bin, "fails"), "disable\n");
  expect((await service(["service", "uninstall"])).code).toBe(1);
  // The file is kept if the service could not be stopped.
  expect(existsSync(unit)).toBe(true);
});

test("--json prints one document, also after a failure", async () => {
  const { service, unit } = place();
  const document = async (...words: string[]) =>
    JSON.parse((await service(["--json", "service", ...words])).out);
  expect(await document("status")).toMatchObject({ ok: false, error: { code: "not_found" } });
  expect(await document("install")).toMatchObject({
    ok: true,
    manager: "systemd",
    file: unit,
    started: true,
  });
  expect(await document("status")).toMatchObject({
    ok: true,
    running: true,
    enabled: true,
    current: true,
    pid: 4711,
  });
  expect(await document("uninstall")).toMatchObject({ ok: true, removed: true });
});

const HOSTILE = `a b"c'd%n$HOME\${X}\\e;f&g<h>`;
// Skipped on machines without systemd, whose own parser checks the unit.
test.skipIf(lacks("systemd-analyze"))(
  "SY1: systemd reads the paths unchanged, and knows every setting in the unit",
  async () => {
    const { home } = place();
    // The folder that this test adds contains special characters.
    const folder = join(home, "a b%n$HOME$" + "{X};f&g<h>");
    mkdirSync(join(folder, "systemd/user"), { recursive: true });
    const node = join(folder, "node");
    symlinkSync(process.execPath, node);
    const launcher = { node, script: join(folder, "parley.js") };
    const more = { env: { XDG_CONFIG_HOME: folder }, machine: { launcher, platform: "linux" } };
    const words = ["--config", join(folder, "c.json5"), "service", "install", "--no-start"];
    expect((await run(folder, words, more)).code).toBe(0);
    const unit = join(folder, "systemd/user/parley.service");
    const verify = (text: string) => {
      const copy = join(home, "parley.service");
      writeFileSync(copy, text);
      const args = ["--user", "verify", "--man=no", copy];
      const env = { PATH: process.env.PATH, HOME: home, XDG_RUNTIME_DIR: home };
      return spawnSync("systemd-analyze", args, { encoding: "utf8", env });
    };
    const text = readFileSync(unit, "utf8");
    expect(verify(text)).toMatchObject({ status: 0, stderr: "" });
    // A stop, which is no failure, takes at most about 6 s.
    expect(text).toMatch(/^Restart=on-failure$[\s\S]*^TimeoutStopSec=30$/m);
    // systemd checks that the program exists. If it parsed the path wrongly, it would name another path.
    expect(verify(text.replace("%%n", "%n")).stderr).toContain("not executable");
    expect(verify(text.replace("OOMPolicy", "OomPolicy")).stderr).toContain("OomPolicy");
  },
);

test("SY1: every word of the command, including the last one, is quoted for systemd", async () => {
  const { service, home } = place();
  const launcher = { node: `/opt/${HOSTILE}/node`, script: `/opt/${HOSTILE}/parley.js` };
  const { out } = await service(["service", "install", "--print"], { machine: { launcher } });
  const escaped = `a b\\"c'd%%n$HOME\${X}\\\\e;f&g<h>`;
  const shell = `"/bin/sh" "-c" "exec \\"$0\\" \\"$@\\""`;
  expect(out).toContain(`ExecStart=:${shell} "/opt/${escaped}/node" "/opt/${escaped}/parley.js" "gateway"\n`);
  expect(out).toContain(`Environment="PATH=/opt/${escaped}:${home}/.local/bin:`);
  const newline = await service(["service", "install"], {
    machine: { launcher: { node: "/a\nb", script: "/p" } },
  });
  expect(newline).toMatchObject({ code: 1, err: expect.stringContaining("control character") });
});

// Skipped on machines without Python, which parses property lists.
test.skipIf(lacks("python3"))(
  "on macOS the service is a launch agent: its file is a property list and names a key file that Node can read",
  async () => {
    const { service, home, keys } = place([]);
    const launcher = { node: `/opt/${HOSTILE}/node`, script: `/opt/${HOSTILE}/parley.js` };
    const machine = { platform: "darwin", userId: 501, launcher };
    const { code, out } = await service(["service", "install", "--no-start"], { machine });
    expect(code).toBe(0);
    expect(out).toContain("  launchctl bootstrap gui/501 ");
    const list = readFileSync(join(home, "Library/LaunchAgents/dev.parley.gateway.plist"), "utf8");
    const parse = "import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";
    expect(
      JSON.parse(execFileSync("python3", ["-c", parse], { input: list, encoding: "utf8" })),
    ).toMatchObject({
      ProgramArguments: [launcher.node, `--env-file-if-exists=${keys}`, launcher.script, "gateway"],
      RunAtLoad: true,
      // launchd restarts it after a failure only, and gives it more time than a stop takes.
      KeepAlive: { SuccessfulExit: false },
      ExitTimeOut: 30,
    });
    // Checks that this version of Node reads the file.
    writeFileSync(keys, "# Keys\nOPENAI_API_KEY=from-file\n");
    const read = ["-p", "process.env.OPENAI_API_KEY"];
    const said = execFileSync(process.execPath, [`--env-file-if-exists=${keys}`, ...read], {
      encoding: "utf8",
      env: {},
    });
    expect(said).toBe("from-file\n");
  },
);

test("a system without systemd and launchd gets a clear error", async () => {
  const { service } = place();
  const { code, err } = await service(["service", "install"], { machine: { platform: "win32" } });
  expect({ code, err }).toMatchObject({ code: 1, err: expect.stringMatching(/systemd.*launchd.*win32/) });
});
