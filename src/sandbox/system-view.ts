// Owns what a contained program sees of the system, as arguments of bubblewrap, and which folders may be a
// workspace.
// SV1: a thing of the host is seen only when it is named here; all of it is read-only.
// SV2: parts of /proc that speak of the whole machine are covered: to a gateway that runs as root they would
//      be writable, capabilities or not, since the kernel asks for the owner.

import { existsSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { sep } from "node:path";
import { fail, ok, type Result } from "../core/errors.ts";

/** Where a contained program finds the gateway's Node and code. */
export const CONTAINED_NODE = "/run/parley/node";
export const CONTAINED_CODE = "/run/parley/code";
export const CONTAINED_CACHE = "/run/parley/cache";
/** /dev/shm is rarely used and never for much. */
const SHARED_MEMORY_MB = 64;
const MEGABYTE = 1024 * 1024;

const SYSTEM_LINKS = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/** Programs of some distributions live apart from /usr. */
const SYSTEM_FOLDERS = ["/usr", "/nix/store", "/gnu/store"];
/** What programs need of /etc. Never whole: it holds password hashes and keys. */
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
const PROC_READ_ONLY = ["bus", "fs", "irq", "sys", "sysrq-trigger"];
const PROC_COVERED = [
  "acpi",
  "asound",
  "kcore",
  "keys",
  "kmsg",
  "kpagecgroup",
  "kpagecount",
  "kpageflags",
  "latency_stats",
  "mtrr",
  "pagetypeinfo",
  "sched_debug",
  "scsi",
  "slabinfo",
  "timer_list",
  "timer_stats",
  "vmallocinfo",
];
/** No workspace lies in these, and none holds one of them. */
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

/** Too wide for a workspace: they hold what belongs to others. A folder inside one is fine. */
const TOO_WIDE = ["/tmp", "/home", "/run", "/var"];

/** Small files that a contained program finds in place of the host's. */
export const OWN_FILES: Readonly<Record<string, string>> = {
  "/etc/passwd": "agent:x:1000:1000:agent:/:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n",
  "/etc/group": "agent:x:1000:\nnogroup:x:65534:\n",
  "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
  "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
};

const isWithin = (folder: string, path: string): boolean =>
  path === folder || folder === sep || path.startsWith(folder + sep);

const realOf = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};

/**
 * The real path of a workspace, or why it can't be contained.
 * `keepOut`: folders and files of the gateway that must not come into the sandbox with it.
 */
export function checkWorkspace(workspace: string, keepOut: readonly string[]): Result<string> {
  const real = realOf(workspace);
  const refuse = (why: string) =>
    fail("sandbox_unavailable", `the workspace ${workspace} can't be contained: ${why}`, {
      hint: "Give the agent a folder of its own: agents.defaults.workspace or agents.list[].workspace.",
    });
  if (real === sep) return refuse("it is the whole file system");
  const system = NOT_A_WORKSPACE.find((folder) => isWithin(folder, real) || isWithin(real, folder));
  if (system !== undefined) return refuse(`it takes in ${system}, a part of the system`);
  const wide = TOO_WIDE.find((folder) => isWithin(real, folder));
  if (wide !== undefined) return refuse(`it takes in all of ${wide}`);
  const own = keepOut.find((path) => isWithin(real, realOf(path)));
  if (own !== undefined) return refuse(`it holds ${own}, which belongs to the gateway`);
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

function ownProc(): string[] {
  const there = (name: string): boolean => existsSync(`/proc/${name}`);
  const covered = PROC_COVERED.filter(there).flatMap((name) => {
    const path = `/proc/${name}`;
    return statSync(path).isDirectory()
      ? ["--tmpfs", path, "--remount-ro", path]
      : ["--ro-bind", "/dev/null", path];
  });
  const readOnly = PROC_READ_ONLY.filter(there).flatMap((name) => [
    "--ro-bind",
    `/proc/${name}`,
    `/proc/${name}`,
  ]);
  return ["--proc", "/proc", ...readOnly, ...covered];
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

export interface View {
  /** The workspace's real path, and the name that settings give it. */
  readonly workspace: string;
  readonly namedWorkspace: string;
  readonly network: boolean;
  readonly temporaryMb: number;
  /** The gateway's Node and the folder of its code. */
  readonly node: string;
  readonly code: string;
  readonly cache?: CacheView;
}

/** The mounts of a sandbox. `OWN_FILES` are read from the file descriptors `firstData`, …, in their order. */
export function mountArguments(view: View, firstData: number): string[] {
  const { workspace, namedWorkspace } = view;
  const resolver = view.network ? ["--ro-bind-try", realOf("/etc/resolv.conf"), "/etc/resolv.conf"] : [];
  const cache =
    view.cache === undefined
      ? []
      : [view.cache.writable ? "--bind" : "--ro-bind", view.cache.dir, CONTAINED_CACHE];
  // A workspace that is a link is found under both of its names.
  const link = namedWorkspace === workspace ? [] : ["--symlink", workspace, namedWorkspace];
  return [
    ...systemFolders(),
    ...Object.keys(OWN_FILES).flatMap((path, index) => ["--ro-bind-data", String(firstData + index), path]),
    ...resolver,
    ...ownProc(),
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
    ...link,
    "--chdir",
    workspace,
    "--remount-ro",
    "/dev",
    "--remount-ro",
    "/",
  ];
}
