// Detects connections of sandboxed programs to the gateway's own port. Sandboxes with `network: true` have a
// carrier: a process outside of the sandbox that makes their connections (uplink.ts). So they could reach a
// gateway that listens beyond the loopback. Their connections are closed here.
// While such a sandbox runs, a connection from this machine is served only if it belongs to another user, or
// if a process that is not a carrier holds its other end. If this can't be determined, the connection is
// closed.
// The check runs when the connection arrives; programs that start later do not matter.

import { readdir, readFile, readlink } from "node:fs/promises";
import type { Socket } from "node:net";
import { treeBelow } from "./process/tree.ts";

/** One TCP connection, as seen from the gateway's end. */
type Connection = Pick<Socket, "localPort" | "remotePort" | "remoteAddress">;
type Ends = { readonly [K in keyof Connection]-?: NonNullable<Connection[K]> };

interface SocketRow {
  readonly uid: number;
  /** Inode of the socket. 0 if the process has already closed the socket. */
  readonly inode: number;
}

const TABLES = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/** Maximum processes of one carrier: a shell, the carrier and its threads. */
const PROCESSES_MAX = 64;
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/;

const portOf = (address: string | undefined): number => Number.parseInt(address?.split(":").at(-1) ?? "", 16);

/** Returns the table row of the peer's end of the connection, if the peer is on this machine. */
async function findRow(peer: Ends): Promise<SocketRow | undefined> {
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

/**
 * Returns whether a process that is not a carrier has this socket open. Looks only at processes in the
 * gateway's process namespace.
 */
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

  /** Registers a carrier. The returned function must be called when it has exited. */
  enter(pid: number): () => void {
    this.#carriers.add(pid);
    return () => {
      this.#carriers.delete(pid);
    };
  }

  /**
   * Decides whether to close the connection. While no sandbox has a network, it returns false without a
   * promise.
   */
  refuses(connection: Connection): Promise<boolean> | false {
    if (this.#carriers.size === 0 || process.platform !== "linux") return false;
    // The addresses are copied, because a closed socket no longer has them.
    const { localPort = 0, remotePort = 0, remoteAddress = "" } = connection;
    return this.#judge({ localPort, remotePort, remoteAddress });
  }

  async #judge(peer: Ends): Promise<boolean> {
    const row = await findRow(peer);
    // A connection from another machine has no row in the table. A local connection without a row is already
    // closed.
    if (row === undefined) return LOOPBACK.test(peer.remoteAddress);
    if (row.uid !== process.getuid?.()) return false;
    const carriers = [...this.#carriers].flatMap((pid) => [
      String(pid),
      ...treeBelow(pid, PROCESSES_MAX).processes.flat(),
    ]);
    return row.inode === 0 || !(await isHeldOutside(row.inode, new Set(carriers)));
  }
}
