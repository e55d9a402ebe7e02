// The network of sandboxed programs: the addresses that each network carrier makes reachable, and the
// clean-up.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { createSandboxFinder, type SandboxFinder } from "../../src/sandbox/find.ts";
import { NetworkPeers } from "../../src/sandbox/peers.ts";
import { treeBelow } from "../../src/sandbox/process/tree.ts";
import { realWorld } from "../../src/world.ts";
import { quick, test } from "../kit/deep.ts";
import { lacks } from "../kit/process/lacks.ts";
import { until } from "../kit/until.ts";
import { Box, gatewayProgram, limitsOf, NEEDS, shown, whyNot } from "./kit.ts";

const NODE = "/run/parley/node";
const missing = await whyNot("bubblewrap");
const which = (program: string): string => spawnSync("which", [program], { encoding: "utf8" }).stdout.trim();
const TOOLS = ["bwrap", "sh", "bash", "unshare", "nsenter", "grep", "sleep", "stat"];

let folder: string;
let workspace: string;
let peers: NetworkPeers;
const closers: (() => void)[] = [];
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "parley-uplink-")));
  workspace = join(folder, "workspace");
  mkdirSync(workspace);
  peers = new NetworkPeers();
});
afterEach(() => {
  for (const close of closers.splice(0)) close();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns a sandbox finder for a machine that has only these programs. */
function finderWith(programs: readonly string[]): SandboxFinder {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  for (const program of programs) symlinkSync(which(program), join(bin, program));
  const world = realWorld({ level: "silent" });
  return createSandboxFinder({ world, keepOut: [], environment: { PATH: bin }, peers });
}

const needs = { ...NEEDS, network: true };

async function run(finder: SandboxFinder, command: string): Promise<string> {
  const found = await finder.find(needs, workspace);
  if (!found.ok) throw new Error(found.error);
  const end = shown(await found.value.run({ kind: "shell", command }, limitsOf()));
  expect(end).toMatchObject({ ending: "ended" });
  return end.text.trimEnd();
}

interface Met {
  readonly port: number;
  readonly sockets: Socket[];
}

function listen(
  at: { port: number; host: string } | { path: string },
  look = async (_: Socket): Promise<void> => undefined,
): Promise<Met> {
  const sockets: Socket[] = [];
  const server = createServer(async (socket) => {
    sockets.push(socket.on("error", () => undefined));
    await look(socket);
    socket.end("hello\n");
  });
  closers.push(() => server.close());
  return new Promise((done) => {
    server.listen(at, () => {
      const address = server.address();
      done({ sockets, port: typeof address === "object" ? (address?.port ?? 0) : 0 });
    });
  });
}

/** An address of this machine that other machines can reach. */
const outer = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === "IPv4" && !one.internal)?.address;

/** Returns the child processes that carry the network of a process. */
const carriersOf = (pid: number): number[] =>
  treeBelow(pid, 1_000)
    .processes.map(([first]) => Number(first))
    .filter((one) => {
      try {
        return /pasta|passt|slirp4netns|unshare/.test(readFileSync(`/proc/${one}/cmdline`, "utf8"));
      } catch {
        return false;
      }
    });

const carriers = ["pasta", "slirp4netns"].filter((carrier) => !lacks(carrier));
const noAddress = lacks("an address of this machine that others can reach", outer !== undefined);

// Skipped if bubblewrap does not work here; `whyNot` reports the reason, and fails in CI.
describe.skipIf(missing !== undefined)("bubblewrap", () => {
  quick(describe).each(carriers)("%s", (carrier) => {
    test("UL1: network: true gives a separate network, without loopback and abstract sockets of the host", async () => {
      const finder = finderWith([...TOOLS, carrier]);
      const met = [await listen({ port: 0, host: "127.0.0.1" }), await listen({ path: `\0${folder}` })];
      const port = met[0]?.port ?? 0;
      const dial = `require("net").connect({path:"\\0${folder}"}).on("error",()=>console.log("no"))`;
      const addresses = ["127.0.0.1", "127.0.0.2", "10.0.2.2", "10.0.2.3"];
      const dials = addresses.map(
        (one) => `timeout 1 bash -c ': < /dev/tcp/${one}/${port}' 2>/dev/null; true`,
      );
      const bound = `python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.2", ${port})); print("bound")'`;
      const text = await run(
        finder,
        [
          ...dials,
          `${NODE} -e '${dial}'`,
          bound,
          "grep -c '\\s00000000\\s.*\\s00000000\\s' /proc/net/route",
        ].join("; "),
      );
      expect(text).toBe(which("python3") === "" ? "no\n1" : "no\nbound\n1");
      expect(met.flatMap(({ sockets }) => sockets)).toEqual([]);
    });

    test("UL3: the network carrier exits when the program exits", async () => {
      await run(finderWith([...TOOLS, carrier]), "true");
      await until(() => carriersOf(process.pid).length === 0);
    });
  });

  // Needs an address to connect to, and this carrier.
  test.skipIf(noAddress || !carriers.includes("slirp4netns"))(
    "connections leave through the carrier, and the gateway closes those to its own port",
    async () => {
      const finder = finderWith([...TOOLS, "slirp4netns"]);
      const judged: unknown[] = [];
      const { port, sockets } = await listen({ port: 0, host: "0.0.0.0" }, async (socket) => {
        const { localPort = 0, remotePort = 0, remoteAddress = "" } = socket;
        judged.push(await peers.refuses({ localPort, remotePort, remoteAddress }));
      });
      expect(await run(finder, `cat < /dev/tcp/${outer}/${port}`)).toBe("hello");
      expect(sockets).toHaveLength(1);
      expect(judged).toEqual([true]);
    },
  );

  test("UL2: without pasta or slirp4netns there is no network, and the error says what to install", async () => {
    const found = await finderWith(TOOLS).find(needs, workspace);
    expect(found).toMatchObject({ ok: false, code: "sandbox_unavailable" });
    const { error, hint } = found as { error: string; hint: string };
    expect(error).toContain("pasta is not installed; slirp4netns is not installed");
    expect(hint).toContain("apt install passt");
  });

  // Skipped without a network carrier.
  test.deep.skipIf(carriers.length === 0)("UL3: a killed gateway leaves no carrier", async () => {
    const box = new Box();
    closers.push(() => box.remove());
    const program = gatewayProgram(box, `await box.run("touch begun; sleep 600");`).replace(
      "network: false",
      "network: true",
    );
    mkdirSync(box.workspace);
    const gateway = spawn(process.execPath, ["--no-warnings", "--input-type=module", "-e", program]);
    const pid = gateway.pid ?? 0;
    await until(() => existsSync(join(box.workspace, "begun")));
    const started = carriersOf(pid);
    expect(started.length).toBeGreaterThan(1);
    gateway.kill("SIGKILL");
    await until(() => started.every((one) => !existsSync(`/proc/${one}/exe`)));
  });
});
