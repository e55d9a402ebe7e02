// Offers the sign-in of editors: the guided setup of a model, in a terminal of the editor. The connection to
// the gateway needs no sign-in of its own, because `parley acp` starts with the gateway's token.

import type { AuthMethod, ClientCapabilities } from "@agentclientprotocol/sdk/unstable";
import type { Link } from "../../../cli/gateway-link.ts";
import type { CliParts } from "../../../cli/parts.ts";
import { OFFLINE_MODEL } from "../../../core/shapes/settings/settings.ts";

export const SETUP = "setup";
const ARGS = [`--${SETUP}`];
const NAME = "Set up a model";
/** Older editors announce and start a terminal sign-in by this field of `_meta`. */
const OLDER = "terminal-auth";

/** Returns the methods that an editor can show: none without a terminal. */
export function signInMethods(
  { auth, _meta }: ClientCapabilities,
  { launcher }: CliParts["machine"],
): AuthMethod[] {
  if (auth?.terminal !== true && _meta?.[OLDER] !== true) return [];
  const older = { label: NAME, command: launcher.node, args: [launcher.script, "acp", ...ARGS] };
  const description = "Finds keys and local models, tests one, and writes the configuration.";
  return [{ type: "terminal", id: SETUP, name: NAME, description, args: ARGS, _meta: { [OLDER]: older } }];
}

/** Returns whether an agent has a model, and not only the offline one. Default: the default agent. */
export async function hasModel(link: Link, agentId: string | undefined) {
  const listed = await link.request("agents.list", {});
  if (!listed.ok) return listed;
  const { agents, defaultId } = listed.value;
  const agent = agents.find(({ id }) => id === (agentId ?? defaultId));
  return { ok: true, value: agent !== undefined && agent.model !== OFFLINE_MODEL } as const;
}
