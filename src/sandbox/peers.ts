// Owns telling a contained program from any other at the other end of a connection to the gateway's own port.
// Sandboxes with `network: true` share the host's network, and so its loopback: the port can be dialled from
// inside, and here is who hangs up.
// PE1: while such a sandbox runs, a connection from this machine is served only if it is another user's, or
//      if a process outside every sandbox holds its other end. One that can't be told is refused: a program
//      inside can hide, and never pass for one outside.
// PE2: the question is asked when the connection comes; a program that starts later has no part in it.

import { readdir, readFile, readlink } from "node:fs/promises";

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

/** Whether a process in the gateway's own process namespace holds this socket. */
async function isHeldOutside(inode: number): Promise<boolean> {
  const own = await readlink("/proc/self/ns/pid");
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    const namespace = await readlink(`/proc/${pid}/ns/pid`).catch(() => "");
    if (namespace === own && (await holds(pid, inode))) return true;
  }
  return false;
}

export class NetworkPeers {
  #running = 0;

  /** A sandbox that shares the network begins. Returns the function that says that it has ended. */
  enter(): () => void {
    this.#running += 1;
    return () => {
      this.#running -= 1;
    };
  }

  /** Whether to hang up. `false` at once while nobody contained could dial. */
  refuses(peer: PeerOf): Promise<boolean> | false {
    return this.#running === 0 || process.platform !== "linux" ? false : this.#judge(peer);
  }

  async #judge(peer: PeerOf): Promise<boolean> {
    const row = await findRow(peer);
    // Another machine's connection has no row here; one of this machine that has none is over.
    if (row === undefined) return LOOPBACK.test(peer.remoteAddress);
    if (row.uid !== process.getuid?.()) return false;
    return row.inode === 0 || !(await isHeldOutside(row.inode));
  }
}
