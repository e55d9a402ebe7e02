// Gives sandboxed programs a network: their own network namespace, and a program outside of it, the carrier
// (pasta or slirp4netns), that forwards their traffic like an ordinary client on the host's network.
// UL1: nothing of the host's own network is shared: no loopback, no abstract Unix socket and no interface.
// UL2: programs start only after the carrier has connected the namespace. Without a carrier no program
//      starts.
// UL3: the carrier exits with the program, and with the gateway.
// The carrier connects as a process of the gateway's user, so a service that listens on all addresses of this
// machine can be reached at one of them, as from the network. The gateway itself closes these connections
// (peers.ts).

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { killGroup, lastOutputRead } from "../world/programs.ts";
import type { NetworkPeers } from "./peers.ts";

const CARRIERS = ["pasta", "slirp4netns"] as const;
export type Carrier = (typeof CARRIERS)[number];

const RESOLVER = "/etc/resolv.conf";
/** File with the DNS servers that systemd's local resolver uses. */
const RESOLVER_BEHIND = "/run/systemd/resolve/resolv.conf";
const NAMESERVER = /^\s*nameserver\s+(\S+)/gm;
const LOOPBACK = /^127\.|^::1$/;
const WORDS_MAX = 2_000;
/** Maximum number of checks, 0.02 s apart, until the network works. */
const READY_TRIES_MAX = 250;

/**
 * A shell script that keeps the namespaces open while its input is open. It prints "made" when they exist,
 * and "up" when the network works. It is root of its user namespace, which contains only the gateway's user.
 */
const HOLDER = [
  "echo made",
  "tries=0",
  "until grep -q '\\s00000000\\s.*\\s00000000\\s' /proc/net/route ||",
  "  grep -v 'lo$' /proc/net/ipv6_route | grep -q '^0\\{32\\} 00 '; do",
  `  tries=$((tries + 1)); [ "$tries" -gt ${READY_TRIES_MAX} ] && exit 1`,
  "  sleep 0.02",
  "done",
  "echo up",
  "read -r _",
].join("\n");

/**
 * A shell script that runs the carrier. It kills the carrier when standard input is closed, which also
 * happens when the gateway exits. Otherwise pasta would outlive a killed gateway.
 */
const KEEPER = [
  "exec 3<&0",
  '"$@" & carrier=$!',
  "{ read -r _ <&3; kill -9 $carrier; } 2>/dev/null >/dev/null &",
  "wait $carrier",
].join("\n");

function nameServers(): string[] {
  try {
    return [...readFileSync(RESOLVER, "utf8").matchAll(NAMESERVER)].map(([, server = ""]) => server);
  } catch {
    return [];
  }
}

/** Returns the file with DNS servers for sandboxed programs. It never names this machine's loopback. */
export function resolverFile(): string {
  const isReachable = nameServers().some((server) => !LOOPBACK.test(server));
  return !isReachable && existsSync(RESOLVER_BEHIND) ? RESOLVER_BEHIND : RESOLVER;
}

/** Explains why a carrier must not be used here, or returns undefined if it may. */
function unfit(carrier: Carrier): string | undefined {
  const [server] = nameServers();
  // Slirp4netns forwards all ports of its name server address to the host's first DNS server, so that server
  // must not be on the loopback.
  if (carrier === "pasta" || (server !== undefined && !LOOPBACK.test(server))) return undefined;
  return `is not used, because ${RESOLVER} names a loopback server, which programs could then reach`;
}

function carrierArguments(carrier: Carrier, pid: number): string[] {
  if (carrier === "slirp4netns") {
    const userNamespace = `--userns-path=/proc/${pid}/ns/user`;
    return ["--configure", "--mtu=65520", "--disable-host-loopback", userNamespace, String(pid), "tap0"];
  }
  const asRoot = process.getuid?.() === 0 ? ["--runas", "0"] : [];
  const noPorts = ["-t", "none", "-u", "none", "-T", "none", "-U", "none"];
  return ["--foreground", "--quiet", "--config-net", "--no-map-gw", ...asRoot, ...noPorts, String(pid)];
}

export interface Uplink {
  readonly carrier: Carrier;
  /** The command that starts a program in the namespaces. */
  readonly enter: readonly string[];
  close(): void;
}

type Environment = Readonly<Record<string, string>>;

/** Resolves to whether a process prints this line before it exits. */
function printsLine(child: ChildProcess, line: string): Promise<boolean> {
  return new Promise((done) => {
    let text = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk;
      if (text.split("\n").includes(line)) done(true);
    });
    child.once("error", () => done(false));
    child.once("close", () => done(false));
  });
}

/** Returns the end of a process's error output. */
function errorTail(child: ChildProcess): () => string {
  let text = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    text = (text + chunk).slice(-WORDS_MAX);
  });
  child.once("error", (error: NodeJS.ErrnoException) => {
    text = error.code === "ENOENT" ? "is not installed" : error.message;
  });
  return () => {
    const last = text.trim().split("\n").at(-1) ?? "";
    return /not found/.test(last) ? "is not installed" : last;
  };
}

async function open(carrier: Carrier, env: Environment): Promise<Result<Uplink & { readonly pid: number }>> {
  const holder = spawn("unshare", ["--user", "--map-root-user", "--net", "sh", "-c", HOLDER], {
    cwd: "/",
    env,
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  holder.stdin?.on("error", () => undefined);
  const whyNoHolder = errorTail(holder);
  const up = printsLine(holder, "up");
  if (!(await printsLine(holder, "made")) || holder.pid === undefined) {
    return fail("sandbox_unavailable", `cannot create a network namespace (unshare: ${whyNoHolder()})`);
  }
  const command = [carrier, ...carrierArguments(carrier, holder.pid)];
  const child = spawn("sh", ["-c", KEEPER, "sh", ...command], {
    cwd: "/",
    env,
    detached: true,
    stdio: ["pipe", "ignore", "pipe"],
  });
  child.stdin?.on("error", () => undefined);
  const why = errorTail(child);
  const ended = new Promise<boolean>((done) => {
    child.once("error", () => done(false));
    child.once("exit", async () => {
      await lastOutputRead();
      done(false);
    });
  });
  const close = (): void => {
    holder.stdin?.end();
    killGroup(holder);
    killGroup(child);
  };
  if ((await Promise.race([up, ended])) && child.pid !== undefined) {
    const namespaces = ["user", "net"].map((kind) => `--${kind}=/proc/${holder.pid}/ns/${kind}`);
    const enter = ["nsenter", "--preserve-credentials", ...namespaces, "--"];
    return ok({ carrier, enter, pid: child.pid, close });
  }
  close();
  return fail("sandbox_unavailable", `${carrier} ${why() || "does not connect a network namespace"}`);
}

/** Creates a network for one program. `preferred`: the carrier that worked before. */
export async function openUplink(
  env: Environment,
  peers: NetworkPeers | undefined,
  preferred?: Carrier,
): Promise<Result<Uplink>> {
  const reasons: string[] = [];
  for (const carrier of preferred === undefined ? CARRIERS : [preferred]) {
    const why = unfit(carrier);
    const opened =
      why === undefined ? await open(carrier, env) : fail("sandbox_unavailable", `${carrier} ${why}`);
    if (!opened.ok) {
      reasons.push(opened.error);
      continue;
    }
    const { pid, close } = opened.value;
    const leave = peers?.enter(pid);
    const closeAll = (): void => {
      leave?.();
      close();
    };
    return ok({ carrier, enter: opened.value.enter, close: closeAll });
  }
  return fail("sandbox_unavailable", `sandboxed programs cannot have a network here: ${reasons.join("; ")}`, {
    hint:
      "Install pasta: `sudo apt install passt` (Debian, Ubuntu), `sudo dnf install passt` (Fedora), " +
      "`sudo pacman -S passt` (Arch); slirp4netns works, too. Or set sandbox.network to false.",
  });
}
