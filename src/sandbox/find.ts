// Finds the sandbox backend that works on this machine, and explains why none does.
// FB1: a backend counts as working only if a program has run in it; it is not enough that it is installed.
// FB2: a working backend is remembered for the life of the process. A failed one is tried again after some
// time, so that installing it needs no restart.
// FB3: if no backend works, the failure names the problem of each and how to install one.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { optional } from "../core/optional.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { ensureFolder } from "../world/folders.ts";
import { SEARCH_PATH } from "../world/programs.ts";
import type { World } from "../world.ts";
import { bubblewrapSandbox } from "./bubblewrap.ts";
import { DiskBook } from "./disk.ts";
import { DOCKER_IMAGE_DEFAULT, dockerSandbox } from "./docker.ts";
import type { NetworkPeers } from "./peers.ts";
import { removeLeftWalls } from "./process/wall.ts";
import type { Sandbox, SandboxNeeds } from "./sandbox.ts";
import { CONTAINED_NODE, checkWorkspace, type Surroundings } from "./system-view.ts";
import { type Carrier, openUplink } from "./uplink.ts";
import type { CodeCache, SandboxInputs } from "./watch.ts";

type Backend = Sandbox["kind"];

/** Whether a backend works on this machine. `why`: the reason, as the end of a sentence. */
export type Probe =
  | { readonly usable: true; readonly carrier?: Carrier }
  | { readonly usable: false; readonly why: string; readonly hint?: string };

export interface SandboxFinder {
  /** Returns the sandbox for a workspace. Fails with the reason if there is none. */
  find(needs: SandboxNeeds, workspace: string): Promise<Result<Sandbox>>;
  /** Checks one backend, for `parley doctor`. */
  probe(backend: Backend, image?: string): Promise<Probe>;
}

export interface FinderParts extends Pick<Surroundings, "keepOut" | "workspaces"> {
  readonly world: World;
  /** Folder for the compiled code of Parley's scripts. If absent, the code is not cached. */
  readonly cacheDir?: string;
  /** Records the processes that carry the network traffic of sandboxes. */
  readonly peers?: NetworkPeers;
  /** The gateway's environment. The backends' programs get only the variables in `PASSED_ON`. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

const HOW_TO_INSTALL =
  "Install bubblewrap 0.8 or newer: `sudo apt install bubblewrap` (Debian, Ubuntu), " +
  "`sudo dnf install bubblewrap` (Fedora), `sudo pacman -S bubblewrap` (Arch). " +
  "On macOS, or where it can't work, start Docker " +
  `and run \`docker pull ${DOCKER_IMAGE_DEFAULT}\`. Then: npx parley-gateway doctor.`;

const FAILED_PROBE_FRESH_MS = 60_000;
const PROBE_MAX_MS = 10_000;
const PROBE_NEEDS: SandboxNeeds = {
  backend: "auto",
  network: false,
  memoryMb: 1_024,
  processesMax: 64,
  diskMb: 1_024,
  git: "read",
};
/** The variables that are needed to find programs, and docker's daemon. */
const PASSED_ON = ["PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "XDG_RUNTIME_DIR"];
const BUBBLEWRAP_MIN = [0, 8] as const;

type Environment = Readonly<Record<string, string>>;

/** Returns the output of a command, or why it could not run. */
function answerOf(
  file: string,
  args: readonly string[],
  env: Environment,
): Promise<{ text: string; problem?: string; missing?: boolean }> {
  return new Promise((done) => {
    execFile(file, args, { env, timeout: PROBE_MAX_MS }, (error, stdout, stderr) => {
      if (error === null) return done({ text: stdout });
      const problem = stderr.trim().split("\n")[0] || error.message;
      done({ text: stdout, problem, missing: error.code === "ENOENT" });
    });
  });
}

const setting = (path: string): string => {
  try {
    return readFileSync(`/proc/sys/${path}`, "utf8").trim();
  } catch {
    return "";
  }
};

/** Explains why an ordinary user cannot create namespaces; the kernel only reports "not permitted". */
function whyNoNamespaces(): string {
  if (setting("user/max_user_namespaces") === "0") {
    return "; user namespaces are disabled here: run sudo sysctl user.max_user_namespaces=10000";
  }
  if (setting("kernel/unprivileged_userns_clone") === "0") {
    return "; only root may create user namespaces here: run sudo sysctl kernel.unprivileged_userns_clone=1";
  }
  if (setting("kernel/apparmor_restrict_unprivileged_userns") === "1") {
    return (
      "; AppArmor restricts user namespaces: " +
      "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap"
    );
  }
  if (existsSync("/.dockerenv")) return "; this is a container, and its rules forbid user namespaces";
  return "";
}

/** Explains that a version of bubblewrap is too old, or returns undefined if it is not. */
export function tooOld(versionLine: string): string | undefined {
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(versionLine)?.slice(1) ?? []).map(Number);
  const [majorMin, minorMin] = BUBBLEWRAP_MIN;
  if (major > majorMin || (major === majorMin && minor >= minorMin)) return undefined;
  return `is too old (${versionLine.trim()}; 0.8 is needed)`;
}

async function probeBubblewrap(world: World, environment: Environment): Promise<Probe> {
  const no = (why: string): Probe => ({ usable: false, why });
  if (process.platform !== "linux") return no("works on Linux only");
  const version = await answerOf("bwrap", ["--version"], environment);
  if (version.missing) return no("is not installed");
  if (version.problem !== undefined) return no(`can't be started (${version.problem})`);
  const old = tooOld(version.text);
  if (old !== undefined) return no(old);
  removeLeftWalls();
  const workspace = await realpath(await mkdtemp(join(tmpdir(), "parley-sandbox-probe-")));
  try {
    const ground = groundOf({ world, environment, needs: PROBE_NEEDS, named: workspace, real: workspace });
    const command = `touch probe && ${CONTAINED_NODE} -e 0`;
    const signal = new AbortController().signal;
    const limits = { timeoutMs: PROBE_MAX_MS, outputMaxBytes: 1_024, signal };
    const end = await bubblewrapSandbox(ground).run({ kind: "shell", command }, limits);
    if (!end.ok) return no(`does not work here (${end.error}${whyNoNamespaces()})`);
    if (end.value.ending === "ended" && end.value.exitCode === 0) return { usable: true };
    return no(`does not run our Node (${end.value.output.read().text.trim() || end.value.ending})`);
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}

async function probeDocker(env: Environment, image: string): Promise<Probe> {
  const no = (why: string): Probe => ({ usable: false, why });
  const version = await answerOf("docker", ["version", "--format", "{{.Server.Version}}"], env);
  if (version.missing) return no("is not installed");
  if (version.problem !== undefined) return no(`has no running daemon (${version.problem})`);
  const found = await answerOf("docker", ["image", "inspect", "--format", "{{.Id}}", image], env);
  if (found.problem !== undefined) return no(`lacks the image ${image}: run docker pull ${image}`);
  return { usable: true };
}

/** Folder of the gateway's code, from source or built. */
const CODE = dirname(dirname(fileURLToPath(import.meta.url)));

function groundOf(args: {
  world: World;
  environment: Environment;
  needs: SandboxNeeds;
  named: string;
  real: string;
  disk?: DiskBook;
  codeCache?: CodeCache;
  peers?: NetworkPeers;
}): SandboxInputs {
  const { world, environment, needs, named, real } = args;
  const disk = args.disk ?? new DiskBook(real, world.clock);
  const place = { workspace: real, namedWorkspace: named, node: process.execPath, code: CODE };
  const cache = args.codeCache === undefined ? {} : { codeCache: args.codeCache };
  const peers = args.peers === undefined ? {} : { peers: args.peers };
  return { world, environment, needs, ...place, ...cache, ...peers, disk };
}

/** Returns a function that runs the probe `ask`, unless a recent result of this name is known (FB2). */
function rememberProbes(world: World): (name: string, ask: () => Promise<Probe>) => Promise<Probe> {
  const probes = new Map<string, { at: number; probe: Promise<Probe> }>();
  return async (name, ask) => {
    const known = probes.get(name);
    const now = world.clock.now();
    if (known !== undefined) {
      const found = await known.probe;
      if (found.usable || now - known.at < FAILED_PROBE_FRESH_MS) return found;
    }
    const fresh = ask();
    probes.set(name, { at: now, probe: fresh });
    return fresh;
  };
}

const carriedBy = (probe: Probe): Pick<SandboxInputs, "carrier"> =>
  probe.usable && probe.carrier !== undefined ? { carrier: probe.carrier } : {};

/** Creates the finder of a whole process. It remembers working backends, and the size of each workspace. */
export function createSandboxFinder(parts: FinderParts): SandboxFinder {
  const { world } = parts;
  const known = PASSED_ON.flatMap((name) => {
    const value = parts.environment?.[name];
    return value === undefined ? [] : [[name, value]];
  });
  const environment = { PATH: SEARCH_PATH, ...Object.fromEntries(known) };
  const remembered = rememberProbes(world);
  const disks = new Map<string, DiskBook>();
  const codeCaches = new Map<string, ReturnType<typeof openCodeCache>>();
  const around: Surroundings = {
    ...parts,
    code: CODE,
    homes: [homedir(), ...(parts.environment?.HOME ? [parts.environment.HOME] : [])],
  };

  const probe = (backend: Backend, image = DOCKER_IMAGE_DEFAULT): Promise<Probe> =>
    backend === "docker"
      ? remembered(`docker ${image}`, () => probeDocker(environment, image))
      : remembered(backend, () => probeBubblewrap(world, environment));

  /** Probes the backend, and also the sandbox's network if it is required. Docker has its own network. */
  async function probeFor(backend: Backend, needs: SandboxNeeds): Promise<Probe> {
    const found = await probe(backend, needs.image);
    if (!found.usable || backend === "docker" || !needs.network) return found;
    return remembered("network", async () => {
      const opened = await openUplink(environment, undefined);
      if (!opened.ok)
        return { usable: false, why: `cannot provide a network: ${opened.error}`, hint: opened.hint ?? "" };
      opened.value.close();
      return { usable: true, carrier: opened.value.carrier };
    });
  }

  async function find(needs: SandboxNeeds, workspace: string): Promise<Result<Sandbox>> {
    const checked = await prepareWorkspace(workspace, around);
    if (!checked.ok) return checked;
    const real = checked.value;
    const disk = disks.get(real) ?? new DiskBook(real, world.clock);
    disks.set(real, disk);
    const codeCache = codeCaches.get(real) ?? openCodeCache(parts.cacheDir, real);
    codeCaches.set(real, codeCache);
    const ground = groundOf({
      world,
      environment,
      needs,
      named: workspace,
      real,
      disk,
      ...optional({ peers: parts.peers }),
      ...(await codeCache),
    });
    const wanted: Backend[] = needs.backend === "auto" ? ["bubblewrap", "docker"] : [needs.backend];
    const reasons: string[] = [];
    let hint: string | undefined;
    for (const backend of wanted) {
      const found = await probeFor(backend, needs);
      if (!found.usable) {
        reasons.push(`${backend} ${found.why}`);
        hint ??= found.hint;
      } else if (backend === "docker") return ok(dockerSandbox(ground));
      else return ok(bubblewrapSandbox({ ...ground, ...carriedBy(found) }));
    }
    return fail("sandbox_unavailable", `no sandbox works here: ${reasons.join("; ")}`, {
      hint: hint ?? HOW_TO_INSTALL,
    });
  }

  return { find, probe };
}

/** Without this folder scripts still work, only slower. */
async function openCodeCache(
  cacheDir: string | undefined,
  workspace: string,
): Promise<{ codeCache?: CodeCache }> {
  if (cacheDir === undefined) return {};
  const dir = join(cacheDir, createHash("sha256").update(workspace).digest("hex").slice(0, 32));
  try {
    await ensureFolder(dir);
    return { codeCache: { dir: await realpath(dir), warm: new Set() } };
  } catch {
    return {};
  }
}

async function prepareWorkspace(workspace: string, around: Surroundings): Promise<Result<string>> {
  // Checks the path before creating the folder, so that no folder is created in a forbidden location.
  const named = checkWorkspace(workspace, around);
  if (!named.ok) return named;
  try {
    await ensureFolder(workspace);
  } catch (error) {
    return fail("sandbox_unavailable", `the workspace ${workspace} cannot be created: ${String(error)}`, {
      hint: "Create it, or set the agent's workspace to a folder that you can write.",
    });
  }
  return checkWorkspace(workspace, around);
}
