// Checks the token of incoming webhooks.
// A hook token that equals the gateway's own token is a problem: any program that may send a hook would then
// have full access.

import type { Settings } from "../../core/shapes/settings/settings.ts";
import { generatedToken } from "../address.ts";
import { count } from "../layout.ts";
import type { Finding } from "./finding.ts";

const name = "hooks";

function noToken(needed: boolean, mend: string): Finding {
  if (!needed)
    return { name, level: "ok", text: "enabled for signed mappings only, because hooks.token is not set" };
  const text = "enabled, but hooks.token is not set, so hooks that need the token refuse every call";
  return { name, level: "warning", text, mend };
}

export async function checkHooks(settings: Settings): Promise<Finding[]> {
  const { enabled, token, mappings } = settings.hooks;
  if (!enabled) return [];
  const mend = "Set hooks.token to a separate secret, for example the output of: openssl rand -hex 24";
  if (token === undefined) {
    const signed = mappings.filter(({ proof }) => proof.kind !== "token").length;
    return [noToken(signed === 0 || signed < mappings.length, mend)];
  }
  if (settings.gateway.token === undefined && token === (await generatedToken(settings.store.dir))) {
    const text = "hooks.token equals the gateway's own token, so every hook refuses it";
    return [{ name, level: "problem", text, mend }];
  }
  const paths = ["agent", "wake", ...mappings.map(({ path }) => path)];
  const text = `enabled, token set, ${count(mappings.length, "mapping")}: POST /hooks/${paths.join(", ")}`;
  return [{ name, level: "ok", text }];
}
