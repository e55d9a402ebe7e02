// Owns `parley service`: the gateway as a service of this user, kept running by systemd or launchd.
// SV1: a file that this command did not write is neither replaced nor removed.
// SV2: root gets no service: agents that may run commands would run them as root.
// SV3: what can't be reached is found out before anything is written. Every command that is run is shown.
// SV4: keys are in a file of their own that only its owner reads; uninstalling leaves it, and all state.

import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { othersReach } from "../../config/file-mode.ts";
import { type Failure, fail, ok, type Result } from "../../core/errors.ts";
import type { HostProgramEnd } from "../../core/node-exec.ts";
import { safeLine, safeText } from "../../core/safe-text.ts";
import { ensureFolder } from "../../world/folders.ts";
import { type Cli, EXIT } from "../cli.ts";
import { launchdService } from "../service/launchd.ts";
import { MARK, type Service, type ServiceParts, type Step } from "../service/manager.ts";
import { systemdService } from "../service/systemd.ts";

const STEP_TIMEOUT_MS = 90_000;
const OUTPUT_MAX_BYTES = 64 * 1024;
/** What systemctl, loginctl and launchctl find the user's manager by. */
const HANDED_ON = ["DBUS_SESSION_BUS_ADDRESS", "XDG_CONFIG_HOME", "LANG", "LC_ALL"];
/** Variables that the gateway would miss: a service sees nothing of the shell's. */
const WANTED = [
  "ANTHROPIC_API_KEY",
  "OPENAI_API_KEY",
  "GEMINI_API_KEY",
  "PARLEY_TOKEN",
  "PARLEY_DATABASE_URL",
];
const ENVIRONMENT_HEAD = "# Keys and tokens of the Parley service, one NAME=value a line.\n";

interface InstallOptions {
  readonly print?: boolean;
  readonly start: boolean;
}

const CONTROL = /\p{Cc}/u;

function partsOf(cli: Cli): Result<ServiceParts> {
  const { home, env, machine } = cli.parts;
  const named = cli.options.config ?? (env.PARLEY_CONFIG || undefined);
  const configHome = env.XDG_CONFIG_HOME;
  const parts: ServiceParts = {
    launcher: machine.launcher,
    home,
    environmentFile: join(home, ".parley", "service.env"),
    userId: machine.userId ?? 0,
    ...(named === undefined ? {} : { configPath: absolute(named, home) }),
    ...(configHome !== undefined && isAbsolute(configHome) ? { configHome } : {}),
  };
  const paths = [home, parts.launcher.node, parts.launcher.script, parts.configPath ?? "", configHome ?? ""];
  const bad = paths.find((path) => CONTROL.test(path));
  if (bad === undefined) return ok(parts);
  return fail("invalid_argument", `no service can be made with a control character in a path: ${bad}`);
}

function absolute(path: string, home: string): string {
  return path === "~" || path.startsWith("~/") ? join(home, path.slice(1)) : resolve(path);
}

function serviceOf(cli: Cli): Result<{ service: Service; parts: ServiceParts }> {
  const { platform } = cli.parts.machine;
  const parts = partsOf(cli);
  if (!parts.ok) return parts;
  if (platform === "linux") return ok({ service: systemdService(parts.value), parts: parts.value });
  if (platform === "darwin") return ok({ service: launchdService(parts.value), parts: parts.value });
  return fail(
    "invalid_argument",
    `services are made for systemd (Linux) and launchd (macOS), not on ${platform}`,
    {
      hint: 'Let what your system has for it start "parley gateway".',
    },
  );
}

/** Why this program should not be somebody's service; undefined: it may be. */
function objection(cli: Cli): Failure | undefined {
  const { userId, launcher } = cli.parts.machine;
  if (userId === 0) {
    return fail(
      "invalid_argument",
      "you are root, and agents of a service of root's would run commands as root",
      {
        hint:
          "Run this as the user whose service it is to be. For a service of the whole machine begin with " +
          "--print, and give the unit a User= of its own.",
      },
    );
  }
  if (!/[\\/]_npx[\\/]/.test(launcher.script)) return undefined;
  return fail("invalid_argument", "this Parley is in npx's cache, which npm may empty at any time", {
    hint: "Install it first: npm install --global parley-gateway. Then: parley service install",
  });
}

/** Runs one command of the manager. Undefined: there is no such program here. */
async function runOne(cli: Cli, argv: readonly string[]): Promise<HostProgramEnd | undefined> {
  const { env, home, machine, runProgram } = cli.parts;
  const handed = HANDED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  const program = {
    argv,
    cwd: dirname(machine.launcher.script),
    env: {
      ...Object.fromEntries(handed),
      HOME: home,
      PATH: env.PATH ?? "/usr/local/bin:/usr/bin:/bin",
      // Missing after su, though the manager is there.
      XDG_RUNTIME_DIR: env.XDG_RUNTIME_DIR ?? `/run/user/${machine.userId ?? 0}`,
    },
    outputMaxBytes: OUTPUT_MAX_BYTES,
    timeoutMs: STEP_TIMEOUT_MS,
    signal: new AbortController().signal,
  };
  try {
    return await runProgram(program);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

const succeeded = (end: HostProgramEnd | undefined): boolean => end?.ending === "ended" && end.exitCode === 0;

/** The words of a program that failed. */
function reasonOf(end: HostProgramEnd | undefined): string {
  if (end === undefined) return "there is no such program here";
  const said = `${end.stderr}\n${end.stdout}`.trim();
  return said === "" ? `it ended with ${end.exitCode ?? end.signal ?? end.ending}` : said;
}

const shown = (argv: readonly string[]): string =>
  argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");

/** Runs the steps one after the other, showing each, up to the first that fails and must not. */
async function follow(cli: Cli, steps: readonly Step[]): Promise<Result<void>> {
  for (const { argv, otherwise } of steps) {
    cli.line(`$ ${safeLine(shown(argv))}`);
    const end = await runOne(cli, argv);
    if (succeeded(end)) continue;
    if (otherwise === undefined) return fail("exec_failed", `${shown(argv)}: ${reasonOf(end)}`);
    if (otherwise !== "") cli.note(safeText(`${shown(argv)}: ${reasonOf(end)}\n${otherwise}`));
  }
  return ok(undefined);
}

/** The file's text; undefined: there is none. Any other trouble is a failure. */
async function textOf(file: string): Promise<Result<string | undefined>> {
  try {
    return ok(await readFile(file, "utf8"));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? ok(undefined) : fail("file_problem", message);
  }
}

/** What was written here before by this command, if anything. Fails where the file is somebody else's. */
async function ownFile(file: string): Promise<Result<string | undefined>> {
  const found = await textOf(file);
  if (!found.ok || found.value === undefined || found.value.includes(MARK)) return found;
  return fail("file_problem", `${file} was not written by "parley service install", so it stays as it is`, {
    hint: "Move it away first, or look after that service yourself.",
  });
}

/** Makes the file for keys, if there is none; one that is there is only closed to others. */
async function keepKeys(cli: Cli, file: string): Promise<void> {
  await ensureFolder(dirname(file));
  try {
    await writeFile(file, ENVIRONMENT_HEAD, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    if (!othersReach((await stat(file)).mode)) return;
    await chmod(file, 0o600);
    cli.note(safeLine(`${file} could be read by others; it has mode 600 now.`));
  }
}

/** All of it or nothing: a reader never finds half a file. */
async function put(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(`${file}.new`, text, { mode: 0o644 });
  await rename(`${file}.new`, file);
}

function tellKeys(cli: Cli, file: string): void {
  cli.line(safeLine(`Keys of models and tokens belong in ${file}: the service sees nothing of your shell.`));
  const here = WANTED.filter((name) => (cli.parts.env[name] ?? "") !== "");
  if (here.length > 0) cli.note(`Set in this shell, and not for the service: ${here.join(", ")}.`);
}

async function install(cli: Cli, wanted: { service: Service; parts: ServiceParts }, start: boolean) {
  const { service, parts } = wanted;
  const before = await ownFile(service.file);
  if (!before.ok) return cli.fail(before);
  if (start && !succeeded(await runOne(cli, service.probe)))
    return cli.fail({ code: "unavailable", error: service.unreachable });
  await keepKeys(cli, parts.environmentFile);
  await put(service.file, service.text);
  cli.line(safeLine(`Written: ${service.file}`));
  if (start) {
    const followed = await follow(cli, service.start);
    if (!followed.ok) return cli.fail(followed);
  } else {
    cli.line("To start it:");
    for (const { argv } of service.start) cli.line(`  ${safeLine(shown(argv))}`);
  }
  tellKeys(cli, parts.environmentFile);
  cli.line(`How it goes: parley service status. What it writes: ${safeLine(service.logs)}`);
  const { manager, file } = service;
  cli.document({ ok: true, manager, file, environmentFile: parts.environmentFile, started: start });
  return EXIT.done;
}

export async function installService(
  cli: Cli,
  _args: readonly string[],
  options: InstallOptions,
): Promise<number> {
  const wanted = serviceOf(cli);
  if (!wanted.ok) return cli.fail(wanted);
  if (options.print === true) {
    const { file, text } = wanted.value.service;
    cli.write(text);
    cli.document({ ok: true, file, text });
    return EXIT.done;
  }
  const refused = objection(cli);
  if (refused !== undefined) return cli.fail(refused);
  try {
    return await install(cli, wanted.value, options.start);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    return cli.fail({ code: "failed", error: (error as Error).message });
  }
}

export async function uninstallService(cli: Cli): Promise<number> {
  const wanted = serviceOf(cli);
  if (!wanted.ok) return cli.fail(wanted);
  const { service, parts } = wanted.value;
  const { file } = service;
  const before = await ownFile(file);
  if (!before.ok) return cli.fail(before);
  if (before.value === undefined) {
    cli.line(safeLine(`There is no service to remove: ${file} does not exist.`));
    cli.document({ ok: true, removed: false, file });
    return EXIT.done;
  }
  if (succeeded(await runOne(cli, service.probe))) {
    const stopped = await follow(cli, service.stop);
    // Its file is what tells the manager how to stop it.
    if (!stopped.ok) return cli.fail(stopped);
    await rm(file, { force: true });
    const forgotten = await follow(cli, service.forget);
    if (!forgotten.ok) return cli.fail(forgotten);
  } else {
    await rm(file, { force: true });
    cli.note(
      `${service.manager} does not answer: if the service runs somewhere, it goes on until it is stopped.`,
    );
  }
  cli.line(safeLine(`Removed: ${file}. Configuration, state and ${parts.environmentFile} stay.`));
  cli.document({ ok: true, removed: true, file });
  return EXIT.done;
}

export async function serviceStatus(cli: Cli): Promise<number> {
  const wanted = serviceOf(cli);
  if (!wanted.ok) return cli.fail(wanted);
  const { service } = wanted.value;
  const { file, manager, logs } = service;
  const before = await ownFile(file);
  if (!before.ok) return cli.fail(before);
  if (before.value === undefined) {
    const error = "Parley is not installed as a service of this user";
    return cli.fail({ code: "not_found", error, hint: "Install it: parley service install" });
  }
  const end = await runOne(cli, service.look);
  const state =
    end === undefined || !succeeded(await runOne(cli, service.probe))
      ? { running: false, enabled: false, text: service.unreachable }
      : service.read(end.exitCode, end.stdout);
  const { running, enabled, pid, text } = state;
  const current = before.value === service.text;
  const whose = pid === undefined ? "" : `, process ${pid}`;
  cli.line(safeText(`${running ? "Running" : "Not running"}${whose}: ${text}`));
  cli.line(safeLine(`${enabled ? "Starts by itself" : "Does not start by itself"}; ${manager}, ${file}`));
  if (!current) cli.note("This Parley would write another file (moved, upgraded?): parley service install");
  cli.line(`What it writes: ${safeLine(logs)}`);
  cli.document({ ok: true, manager, file, running, enabled, current, ...(pid === undefined ? {} : { pid }) });
  return running ? EXIT.done : EXIT.failed;
}
