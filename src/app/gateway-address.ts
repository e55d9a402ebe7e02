// The address of the gateway of this process, and its description for commands of this machine.

import { reachableHost } from "../cli/address.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { publishGateway } from "../world/gateway-address.ts";
import type { World } from "../world.ts";

interface Published {
  readonly settings: Settings;
  readonly configPath?: string | undefined;
  readonly world: World;
}

/** Returns the address at which programs of this machine reach the gateway. */
export function addressAt({ gateway }: Settings, port: number): string {
  return `ws://${reachableHost(gateway.host)}:${port}`;
}

/** Publishes the address for commands of this machine. Returns a function that removes it. */
export function publishAddress({ settings, configPath, world }: Published, port: number): () => void {
  const url = addressAt(settings, port);
  try {
    return publishGateway(settings.store.dir, { url, config: configPath });
  } catch (error) {
    // With a shared database, the store directory may be read-only.
    world.log.warn({ err: error, url }, "commands find this gateway only with --url");
    return () => {};
  }
}
