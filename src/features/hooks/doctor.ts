// Checks the token of incoming web hooks for `parley doctor`.

import { generatedToken } from "../../cli/address.ts";
import type { Cli } from "../../cli/cli.ts";
import { count } from "../../cli/layout.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Finding } from "../../feature.ts";
import { pathOf } from "./settings.ts";

/**
 * Checks the token of incoming webhooks. One that equals the gateway's own token is a problem: any program
 * that may send a hook would then have full access.
 */
export async function check(_cli: Cli, { hooks, gateway, store }: Settings): Promise<Finding[]> {
  const { token, mappings } = hooks;
  const name = "hooks";
  const mend = "Set hooks.token to a separate secret, for example the output of: openssl rand -hex 24";
  if (!token) {
    const signed = mappings.filter(({ preset }) => preset !== "token").length;
    if (signed > 0 && signed === mappings.length)
      return [
        { name, level: "ok", text: "enabled for signed mappings only, because hooks.token is not set" },
      ];
    const text = "enabled, but hooks.token is not set, so hooks that need the token refuse every call";
    return [{ name, level: "warning", text, mend }];
  }
  if (gateway.token === undefined && token === (await generatedToken(store.dir))) {
    const text = "hooks.token equals the gateway's own token, so every hook refuses it";
    return [{ name, level: "problem", text, mend }];
  }
  const paths = ["agent", "wake", ...mappings.map(pathOf)];
  const text = `enabled, token set, ${count(mappings.length, "mapping")}: POST /hooks/${paths.join(", ")}`;
  return [{ name, level: "ok", text }];
}
