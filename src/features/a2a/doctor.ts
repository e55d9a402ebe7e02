// Checks the agents elsewhere for `parley doctor`: reads the card of each.

import type { Cli } from "../../cli/cli.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Finding } from "../../feature.ts";
import { silenced } from "../../world.ts";
import { inspectRemote } from "./remote/remote.ts";
import type { A2aRuntime } from "./settings.ts";

export async function check({ parts }: Cli, { agents }: Settings): Promise<Finding[]> {
  const world = silenced(parts.world);
  const found = agents.map(async ({ id, runtime }): Promise<Finding[]> => {
    if (runtime?.type !== "a2a") return [];
    const { usable, text: about } = await inspectRemote(runtime as unknown as A2aRuntime, world);
    const text = `agent ${id}: ${about}`;
    if (usable) return [{ name: "a2a", level: "ok", text }];
    const mend = `Check card, key and token in agents.list[${id}].runtime.`;
    return [{ name: "a2a", level: "problem", text, mend }];
  });
  return (await Promise.all(found)).flat();
}
