// Decides which parts of the system a sandboxed program can see (as arguments of bubblewrap), and which
// folders may be a workspace.
// SV1: only the files of the host that are listed here are visible, and they are read-only.
// SV2: parts of /proc about the whole machine are covered, except plain files that everybody may read and
// nobody may write. If the gateway runs as root, all other files would be writable even without capabilities,
// because the kernel checks the owner.
// SV3: a workspace that a sandboxed agent may write must not contain another agent's workspace: the agent
// could replace that workspace by a link, and the other agent's sandbox would mount the link's target.

import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { isInside } from "../world/folders.ts";
import { SEARCH_PATH } from "../world/programs.ts";
import type { ProtectedPath } from "./repository.ts";
import { resolverFile } from "./uplink.ts";

/** Paths of the gateway's Node and code in a sandbox. */
export const CONTAINED_NODE = "/run/parley/node";
export const CONTAINED_CODE = "/run/parley/code";
export const CONTAINED_CACHE = "/run/parley/cache";
/** Size of /dev/shm. Few programs use it, and none needs much. */
const SHARED_MEMORY_MB = 64;
const MEGABYTE = 1024 * 1024;

const SYSTEM_LINKS = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/** Some distributions keep programs outside of /usr. */
const SYSTEM_FOLDERS = ["/usr", "/nix/store", "/gnu/store"];
/** Files in /etc that programs need. Never the whole folder: it contains password hashes and keys. */
const CONFIGURATION = [
  "alternatives",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "mime.types",
  "protocols",
  "services",
  "ssl/certs",
  "ssl/openssl.cnf",
  "pki/tls/certs",
  "pki/tls/openssl.cnf",
  "pki/ca-trust/extracted",
  "crypto-policies/back-ends",
  "fonts",
  "terminfo",
];
/** Files of /proc that everybody may read but that help an attacker. */
const PROC_TELLING = ["cmdline", "iomem", "ioports", "kallsyms", "key-users", "keys"];
/** Entries of /proc that are not hidden, because a namespace isolates them. */
const PROC_OWN = ["sysvipc"];
const READ_BY_ALL_WRITTEN_BY_NONE = 0o444;
/** The kernel's settings, which programs may read but must never write. */
const PROC_SETTINGS = "/proc/sys";
/** A workspace must not be inside of these folders, nor contain one of them. */
const NOT_A_WORKSPACE = [
  ...SYSTEM_LINKS,
  ...SYSTEM_FOLDERS,
  "/etc",
  "/proc",
  "/dev",
  "/sys",
  "/boot",
  "/run/parley",
];

/**
 * Folders that contain other people's files, so they must not be a workspace. A folder inside one is allowed.
 */
const TOO_WIDE = ["/tmp", "/home", "/run", "/run/user", "/var", "/var/lib", "/opt", "/srv", "/mnt", "/media"];

/** Small files that replace the host's files in a sandbox. */
export const OWN_FILES: Readonly<Record<string, string>> = {
  "/etc/passwd": "agent:x:1000:1000:agent:/:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n",
  "/etc/group": "agent:x:1000:\nnogroup:x:65534:\n",
  "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
  "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
};

/** Resolves links in a path that may not exist yet. */
const realOf = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(realOf(above), basename(path));
  }
};

/** Folders of this machine that a workspace must not overlap. */
export interface Surroundings {
  /**
   * The gateway's store and configuration. A workspace must neither contain these paths nor lie inside them.
   */
  readonly keepOut: readonly string[];
  /** The gateway's code. The same rule applies, but a sandbox may show it. */
  readonly code?: string;
  /** Home folders. A workspace must not be one of them, or contain one. */
  readonly homes?: readonly string[];
  /**
   * The workspaces of all agents. No workspace may be inside another one that is sandboxed; two agents may
   * share a workspace.
   */
  readonly workspaces?: readonly string[];
}

/** Returns the real path of a workspace, or why it cannot be used in a sandbox. */
export function checkWorkspace(workspace: string, around: Surroundings): Result<string> {
  const real = realOf(workspace);
  const holds = (path: string): boolean => isInside(real, path) || isInside(real, realOf(path));
  const refuse = (why: string) =>
    fail("sandbox_unavailable", `the workspace ${workspace} cannot be used in a sandbox: ${why}`, {
      hint: "Give the agent its own folder: agents.defaults.workspace or agents.list[].workspace.",
    });
  if (real === sep) return refuse("it is the whole file system");
  const system = NOT_A_WORKSPACE.find((folder) => isInside(folder, real) || isInside(real, folder));
  if (system !== undefined) return refuse(`it contains ${system}, a part of the system`);
  const wide = [...TOO_WIDE, ...(around.homes ?? [])].find(holds);
  if (wide !== undefined) return refuse(`it contains all of ${wide}`);
  const seen = around.keepOut.find((path) => SYSTEM_FOLDERS.some((folder) => isInside(folder, realOf(path))));
  if (seen !== undefined) return refuse(`every sandbox would show ${seen}, which belongs to the gateway`);
  const gateways = around.code === undefined ? around.keepOut : [...around.keepOut, around.code];
  const own = gateways.find((path) => holds(path) || isInside(realOf(path), real));
  if (own !== undefined) return refuse(`it contains or is inside of ${own}, which belongs to the gateway`);
  const other = around.workspaces?.find((path) => holds(path) && path !== workspace && realOf(path) !== real);
  if (other !== undefined) return refuse(`it contains ${other}, the workspace of another agent`);
  return ok(real);
}

function systemFolders(): string[] {
  const folders = SYSTEM_FOLDERS.filter((path) => existsSync(path));
  const links = SYSTEM_LINKS.filter((path) => existsSync(path)).flatMap((path) => {
    try {
      return ["--symlink", readlinkSync(path), path];
    } catch {
      return ["--ro-bind", path, path];
    }
  });
  const configuration = CONFIGURATION.map((name) => `/etc/${name}`).filter((path) => existsSync(path));
  return [...[...folders, ...configuration].flatMap((path) => ["--ro-bind", path, path]), ...links];
}

function coverOf(name: string): string[] {
  const path = `/proc/${name}`;
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status?.isDirectory()) return ["--tmpfs", path, "--remount-ro", path];
  if (status === undefined || !status.isFile()) return [];
  const harmless = (status.mode & 0o777) === READ_BY_ALL_WRITTEN_BY_NONE && !PROC_TELLING.includes(name);
  return harmless ? [] : ["--ro-bind", "/dev/null", path];
}

const memoryFolder = (path: string, megabytes: number): string[] => [
  "--size",
  String(megabytes * MEGABYTE),
  "--tmpfs",
  path,
];

export interface CacheView {
  readonly dir: string;
  readonly writable: boolean;
}

export function containedEnvironment(
  workspace: string,
  searchPath: string | undefined,
  cache: CacheView | undefined,
): Readonly<Record<string, string>> {
  return {
    PATH: searchPath ?? SEARCH_PATH,
    HOME: workspace,
    LANG: "C.UTF-8",
    TERM: "dumb",
    TMPDIR: "/tmp",
    ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: CONTAINED_CACHE }),
  };
}

export interface View {
  /** Real path of the workspace, and its path in the settings. */
  readonly workspace: string;
  readonly namedWorkspace: string;
  readonly network: boolean;
  readonly temporaryMb: number;
  /** The gateway's Node, and the folder of its code. */
  readonly node: string;
  readonly code: string;
  readonly cache?: CacheView;
  /** Protected paths of the workspace. Each comes after the folders that contain it. */
  readonly held: readonly ProtectedPath[];
}

/** Returns the mounts. `OWN_FILES` are read from the file descriptors `firstData`, …, in order. */
export function mountArguments(view: View, firstData: number): string[] {
  const { workspace, namedWorkspace } = view;
  const resolver = view.network ? ["--ro-bind-try", realOf(resolverFile()), "/etc/resolv.conf"] : [];
  const cache =
    view.cache === undefined
      ? []
      : [view.cache.writable ? "--bind" : "--ro-bind", view.cache.dir, CONTAINED_CACHE];
  // If the workspace is a link, it is available under both paths.
  const link = namedWorkspace === workspace ? [] : ["--symlink", workspace, namedWorkspace];
  const kept = [...PROC_OWN, basename(PROC_SETTINGS)];
  const others = readdirSync("/proc").filter((name) => !/^\d+$/.test(name) && !kept.includes(name));
  return [
    ...systemFolders(),
    ...Object.keys(OWN_FILES).flatMap((path, index) => ["--ro-bind-data", String(firstData + index), path]),
    ...resolver,
    ...["--proc", "/proc", "--ro-bind", PROC_SETTINGS, PROC_SETTINGS],
    ...others.flatMap(coverOf),
    "--dev",
    "/dev",
    ...memoryFolder("/dev/shm", SHARED_MEMORY_MB),
    ...memoryFolder("/tmp", view.temporaryMb),
    "--ro-bind",
    view.node,
    CONTAINED_NODE,
    "--ro-bind",
    view.code,
    CONTAINED_CODE,
    ...cache,
    "--bind",
    workspace,
    workspace,
    ...view.held.flatMap(({ path, readOnly }) => [readOnly ? "--ro-bind" : "--bind", path, path]),
    ...link,
    "--chdir",
    workspace,
    "--remount-ro",
    "/dev",
    "--remount-ro",
    "/",
  ];
}
