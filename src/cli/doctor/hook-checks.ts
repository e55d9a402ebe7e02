// Owns what the doctor finds about web hooks that come in: who could call them, and with what.
// HD1: a token that is also the gateway's is a problem: whoever may send a hook could do everything.

import type { Settings } from "../../core/settings.ts";
import { generatedToken } from "../address.ts";
import { count } from "../layout.ts";
import type { Finding } from "./finding.ts";

const name = "hooks";

function noToken(needed: boolean, mend: string): Finding {
  if (!needed) return { name, level: "ok", text: "on, for signed mappings only: hooks.token is not set" };
  const text = "on, but hooks.token is not set: what needs it answers nobody";
  return { name, level: "warning", text, mend };
}

export async function checkHooks(settings: Settings): Promise<Finding[]> {
  const { enabled, token, mappings } = settings.hooks;
  if (!enabled) return [];
  const mend = "Set hooks.token to a secret of its own, such as the output of: openssl rand -hex 24";
  if (token === undefined) {
    const signed = mappings.filter(({ proof }) => proof.kind !== "token").length;
    return [noToken(signed === 0 || signed < mappings.length, mend)];
  }
  if (settings.gateway.token === undefined && token === (await generatedToken(settings.store.dir))) {
    const text = "hooks.token is the gateway's own token: it opens no web hook";
    return [{ name, level: "problem", text, mend }];
  }
  const paths = ["agent", "wake", ...mappings.map(({ path }) => path)];
  const text = `on, with a token and ${count(mappings.length, "mapping")}: POST /hooks/${paths.join(", ")}`;
  return [{ name, level: "ok", text }];
}
