// Starts the programs of ACP agents. Part of the composition root.

import { join } from "node:path";
import { reachableHost } from "../cli/address.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { AcpHost } from "../execute/acp.ts";
import { Passes } from "../tools/passes.ts";
import { logging, type World } from "../world.ts";

/** Programs of ACP agents. The code that runs them is loaded by the first run of such an agent. */
export interface AcpParts {
  readonly passes: Passes;
  readonly open: () => Promise<AcpHost>;
  readonly programs: () => readonly string[];
  /** Set once the gateway listens. Runs start only after that. */
  port: number;
  close(): Promise<void>;
}

interface AcpOptions {
  readonly settings: Settings;
  readonly world: World;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /** The command that starts this program. */
  readonly launcher: readonly string[];
}

/** Returns the address of the gateway for programs on this machine. */
export const urlOf = ({ gateway }: Settings, { port }: Pick<AcpParts, "port">): string =>
  `ws://${reachableHost(gateway.host)}:${port}`;

export function acpParts({ settings, world, environment, version, launcher }: AcpOptions): AcpParts {
  const passes = new Passes(() => world.ids.uuid());
  let opened: Promise<AcpHost> | undefined;
  let host: AcpHost | undefined;
  const gatewayUrl = (): string => urlOf(settings, parts);
  const open = async (): Promise<AcpHost> => {
    const { openAcpHost } = await import("../execute/acp.ts");
    const dir = join(settings.store.dir, "acp");
    host = openAcpHost({
      world: logging(world, { part: "agent" }),
      passes,
      environment,
      version,
      dir,
      mcp: { launcher, gatewayUrl },
    });
    return host;
  };
  const parts: AcpParts = {
    passes,
    port: 0,
    open: () => {
      opened ??= open();
      return opened;
    },
    programs: () => host?.agents.running() ?? [],
    close: async () => {
      await (await opened)?.agents.close();
    },
  };
  return parts;
}
