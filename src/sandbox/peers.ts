// Owns telling a contained program from any other at the other end of a connection to the gateway's own port.
// Sandboxes with `network: true` have a carrier (uplink.ts), which dials for them at the host: a gateway that
// listens at more than the loopback can be dialled so, and here is who hangs up.
// PE1: while such a sandbox runs, a connection from this machine is served only if it is another user's, or
//      if a process that is no carrier holds its other end. One that can't be told is refused.
// PE2: the question is asked when the connection comes; a program that starts later has no part in it.

import { readdir, readFile, readlink } from "node:fs/promises";
import { treeBelow } from "./process-tree.ts";

/** One TCP connection, as the gateway's end sees it. */
export interface PeerOf {
  readonly localPort: number;
  readonly remotePort: number;
  readonly remoteAddress: string;
}

interface SocketRow {
  readonly uid: number;
  /** 0: its process has closed it. */
  readonly inode: number;
}

const TABLES = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/** Of one carrier: a shell, the carrier and its threads. */
const PROCESSES_MAX = 64;
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/;

const portOf = (address: string | undefined): number => Number.parseInt(address?.split(":").at(-1) ?? "", 16);

/** The peer's end of the connection, if it is on this machine. */
async function findRow(peer: PeerOf): Promise<SocketRow | undefined> {
  for (const table of TABLES) {
    const text = await readFile(table, "utf8").catch(() => "");
    for (const line of text.split("\n").slice(1)) {
      const [, local, remote, , , , , uid, , inode] = line.trim().split(/\s+/);
      if (portOf(local) === peer.remotePort && portOf(remote) === peer.localPort) {
        return { uid: Number(uid), inode: Number(inode) };
      }
    }
  }
  return undefined;
}

async function holds(pid: string, inode: number): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  for (const fd of await readdir(folder).catch(() => [])) {
    if ((await readlink(`${folder}/${fd}`).catch(() => "")) === `socket:[${inode}]`) return true;
  }
  return false;
}

/** Whether a process in the gateway's own process namespace holds this socket, and belongs to no carrier. */
async function isHeldOutside(inode: number, carriers: ReadonlySet<string>): Promise<boolean> {
  const own = await readlink("/proc/self/ns/pid");
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    if (carriers.has(pid)) continue;
    const namespace = await readlink(`/proc/${pid}/ns/pid`).catch(() => "");
    if (namespace === own && (await holds(pid, inode))) return true;
  }
  return false;
}

export class NetworkPeers {
  readonly #carriers = new Set<number>();

  /** A carrier begins. Returns the function that says that it has ended. */
  enter(pid: number): () => void {
    this.#carriers.add(pid);
    return () => {
      this.#carriers.delete(pid);
    };
  }

  /** Whether to hang up. `false` at once while nobody contained could dial. */
  refuses(peer: PeerOf): Promise<boolean> | false {
    return this.#carriers.size === 0 || process.platform !== "linux" ? false : this.#judge(peer);
  }

  async #judge(peer: PeerOf): Promise<boolean> {
    const row = await findRow(peer);
    // Another machine's connection has no row here; one of this machine that has none is over.
    if (row === undefined) return LOOPBACK.test(peer.remoteAddress);
    if (row.uid !== process.getuid?.()) return false;
    const carriers = [...this.#carriers].flatMap((pid) => [
      String(pid),
      ...treeBelow(pid, PROCESSES_MAX).processes.flat(),
    ]);
    return row.inode === 0 || !(await isHeldOutside(row.inode, new Set(carriers)));
  }
}
