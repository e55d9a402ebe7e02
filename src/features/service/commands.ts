// Implements `parley service`: runs the gateway as a service of this user, under systemd or launchd.
// SV1: a file that this command did not write is neither replaced nor removed.
// SV2: no service is installed for root, because agents with the right to run commands would run them as
//      root.
// SV3: if the service manager cannot be reached, nothing is written. Each command that this program runs is
//      printed.
// SV4: keys are in a separate file that only its owner can read. Uninstalling keeps that file and all state.

import { appendFile, chmod, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { type Cli, EXIT } from "../../cli/cli.ts";
import { inNpxCache } from "../../cli/npx-cache.ts";
import { shellLine } from "../../cli/shell-words.ts";
import { othersReach } from "../../config/file-mode.ts";
import { replaceFile } from "../../config/replace-file.ts";
import { optional } from "../../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { HostProgramEnd } from "../../core/shapes/host-program.ts";
import { safeLine, safeText } from "../../core/text/safe-text.ts";
import { ensureFolder } from "../../world/folders.ts";
import { launchdService } from "./launchd.ts";
import { MARK, type Service, type ServiceParts, type Step } from "./manager.ts";
import { systemdService } from "./systemd.ts";

const STEP_TIMEOUT_MS = 90_000;
const OUTPUT_MAX_BYTES = 64 * 1024;
/** Environment variables that systemctl, loginctl and launchctl need to find the user's service manager. */
const HANDED_ON = ["DBUS_SESSION_BUS_ADDRESS", "XDG_CONFIG_HOME", "LANG", "LC_ALL"];
/**
 * Environment variables that the user's shell may have and the service may need. A service does not inherit
 * them.
 */
const WANTED = [
  "ANTHROPIC_API_KEY",
  "OPENAI_API_KEY",
  "GEMINI_API_KEY",
  "PARLEY_TOKEN",
  "PARLEY_DATABASE_URL",
];
const ENVIRONMENT_HEAD = "# Keys and tokens of the Parley service, one NAME=value on each line.\n";

interface InstallOptions {
  readonly print?: boolean;
  readonly noStart?: boolean;
  /** Environment variables to copy to the service's file for keys. */
  readonly keys?: readonly string[];
}

/** Values that both systemd and Node read unchanged from a file of variables. */
const PLAIN_VALUE = /^[\w.:/+=@%,-]+$/;

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
  return fail(
    "invalid_argument",
    `this path has control characters, which service files cannot contain: ${bad}`,
  );
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
  return fail("invalid_argument", `services need systemd (Linux) or launchd (macOS); this is ${platform}`, {
    hint: 'Start "npx parley-gateway gateway" with the service manager of your system.',
  });
}

/**
 * Returns the reason why this program must not be installed as a service. Undefined if nothing prevents it.
 */
function objection(cli: Cli): Failure | undefined {
  if (cli.parts.machine.userId === 0) {
    return fail("invalid_argument", "you are root: agents of this service would run commands as root", {
      hint:
        "Run this as the user who should own the service. For a system-wide service, take the output " +
        "of --print and set User= in the unit.",
    });
  }
  return inNpxCache(cli, "npx parley-gateway service install");
}

/** Runs one command of the service manager. Returns undefined if that command is not installed. */
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
      // Set this variable: after `su` it is missing, even if the user's service manager is running.
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

const hasSucceeded = (end: HostProgramEnd | undefined): boolean =>
  end?.ending === "ended" && end.exitCode === 0;

/** Returns the output of a failed program, or the exit code if the program printed nothing. */
function reasonOf(end: HostProgramEnd | undefined): string {
  if (end === undefined) return "command not found";
  const output = `${end.stderr}\n${end.stdout}`.trim();
  return output === "" ? `exit ${end.exitCode ?? end.signal ?? end.ending}` : output;
}

/**
 * Runs the steps in order, and prints each before it runs. Stops at a failed step, unless the step has
 * `otherwise`.
 */
async function follow(cli: Cli, steps: readonly Step[]): Promise<Result<void>> {
  for (const { argv, otherwise } of steps) {
    cli.line(`$ ${safeLine(shellLine(argv))}`);
    const end = await runOne(cli, argv);
    if (hasSucceeded(end)) continue;
    if (otherwise === undefined) return fail("exec_failed", `${shellLine(argv)}: ${reasonOf(end)}`);
    if (otherwise !== "") cli.note(safeText(`${shellLine(argv)}: ${reasonOf(end)}\n${otherwise}`));
  }
  return ok(undefined);
}

/** Reads a file. Returns undefined if it does not exist, and a failure for any other problem. */
async function textOf(file: string): Promise<Result<string | undefined>> {
  try {
    return ok(await readFile(file, "utf8"));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? ok(undefined) : fail("file_problem", message);
  }
}

/**
 * Returns the file's text if this command wrote the file, undefined if it does not exist. Fails if another
 * program wrote it.
 */
async function ownFile(file: string): Promise<Result<string | undefined>> {
  const found = await textOf(file);
  if (!found.ok || found.value === undefined || found.value.includes(MARK)) return found;
  return fail(
    "file_problem",
    `${file} was not written by "npx parley-gateway service install", so it is left unchanged`,
    {
      hint: "Move it away first, or manage that service yourself.",
    },
  );
}

/** Creates the file for keys. If it exists and other users can read it, sets its mode to 600. */
async function keepKeys(cli: Cli, file: string): Promise<void> {
  await ensureFolder(dirname(file));
  try {
    await writeFile(file, ENVIRONMENT_HEAD, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    if (!othersReach((await stat(file)).mode)) return;
    await chmod(file, 0o600);
    cli.note(safeLine(`${file} was readable by other users; its mode is 600 now.`));
  }
}

/**
 * Copies variables of this process to the file for keys, unless the file has them. Returns those that the
 * service sees with the values of this process.
 */
async function copyKeys({ parts: { env } }: Cli, file: string, names: readonly string[]): Promise<string[]> {
  const before = await readFile(file, "utf8");
  const isThere = (name: string): boolean => new RegExp(`^\\s*${name}\\s*=`, "m").test(before);
  const isSame = (name: string): boolean => before.split("\n").includes(`${name}=${env[name]}`);
  const added = names.filter((name) => !isThere(name) && PLAIN_VALUE.test(env[name] ?? ""));
  const lineBreak = before === "" || before.endsWith("\n") ? "" : "\n";
  if (added.length > 0)
    await appendFile(file, lineBreak + added.map((name) => `${name}=${env[name]}\n`).join(""));
  return names.filter((name) => isSame(name) || added.includes(name));
}

function printKeysHint(cli: Cli, file: string, keys: readonly string[], copied: readonly string[]): void {
  cli.say(`Put model keys and tokens into ${file}: the service does not see variables of your shell.`);
  const isSet = (name: string): boolean => (cli.parts.env[name] ?? "") !== "";
  const here = [...new Set([...WANTED, ...keys])].filter((name) => isSet(name) && !copied.includes(name));
  if (here.length > 0) cli.note(`Set in this shell, but not so for the service: ${here.join(", ")}.`);
}

/** Returns why no service can be installed here. Undefined if nothing prevents it. */
export function serviceObjection(cli: Cli): Failure | undefined {
  const wanted = serviceOf(cli);
  return wanted.ok ? objection(cli) : wanted;
}

export async function installService(cli: Cli, options: InstallOptions): Promise<number> {
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
    const { noStart, keys = [] } = options;
    const { service, parts } = wanted.value;
    const start = noStart !== true;
    const before = await ownFile(service.file);
    if (!before.ok) return cli.fail(before);
    if (start && !hasSucceeded(await runOne(cli, service.probe)))
      return cli.fail({ code: "unavailable", error: service.unreachable });
    await keepKeys(cli, parts.environmentFile);
    const copied = await copyKeys(cli, parts.environmentFile, keys);
    await mkdir(dirname(service.file), { recursive: true });
    replaceFile(service.file, service.text, 0o644);
    cli.say(`Wrote ${service.file}`);
    if (start) {
      const followed = await follow(cli, service.start);
      if (!followed.ok) return cli.fail(followed);
    } else {
      cli.line("To start it:");
      for (const { argv } of service.start) cli.line(`  ${safeLine(shellLine(argv))}`);
    }
    printKeysHint(cli, parts.environmentFile, keys, copied);
    cli.line(`Status: npx parley-gateway service status. Log: ${safeLine(service.logs)}`);
    const { manager, file } = service;
    cli.document({ ok: true, manager, file, environmentFile: parts.environmentFile, started: start });
    return EXIT.done;
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
    cli.say(`No service to remove: ${file} does not exist.`);
    cli.document({ ok: true, removed: false, file });
    return EXIT.done;
  }
  if (hasSucceeded(await runOne(cli, service.probe))) {
    const stopped = await follow(cli, service.stop);
    // If the service could not be stopped, keep its file: the service manager needs the file to stop the
    // service.
    if (!stopped.ok) return cli.fail(stopped);
    await rm(file, { force: true });
    const forgotten = await follow(cli, service.forget);
    if (!forgotten.ok) return cli.fail(forgotten);
  } else {
    await rm(file, { force: true });
    cli.note(`${service.manager} does not answer. If the service is running, stop it by hand.`);
  }
  cli.say(`Removed ${file}. Configuration, state and ${parts.environmentFile} were kept.`);
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
    return cli.fail({ code: "not_found", error, hint: "Install it: npx parley-gateway service install" });
  }
  const end = await runOne(cli, service.look);
  const state =
    end === undefined || !hasSucceeded(await runOne(cli, service.probe))
      ? { running: false, enabled: false, text: service.unreachable }
      : service.read(end.exitCode, end.stdout);
  const { running, enabled, pid, text } = state;
  const current = before.value === service.text;
  const pidText = pid === undefined ? "" : `, process ${pid}`;
  cli.line(safeText(`${running ? "Running" : "Not running"}${pidText}: ${text}`));
  cli.say(`${enabled ? "Starts automatically" : "Does not start automatically"}; ${manager}, ${file}`);
  if (!current)
    cli.note(
      "The service file is outdated (Parley was moved or upgraded). " +
        "Update it: npx parley-gateway service install",
    );
  cli.line(`Log: ${safeLine(logs)}`);
  cli.document({ ok: true, manager, file, running, enabled, current, ...optional({ pid }) });
  return running ? EXIT.done : EXIT.failed;
}
