// Builds the public card of an agent that A2A clients can reach, and signs it.
// AC1: all processes of a store sign with one key, so a client that keeps the public key can trust each of
//      them.

import { createHash } from "node:crypto";
import { AgentCard, generateAgentCardSignature } from "@a2a-js/sdk";
import { once } from "../../../core/once.ts";
import type { AgentSettings, Settings } from "../../../core/shapes/settings/settings.ts";
import type { BasicDeps } from "../../../gateway/call.ts";
import { IMAGE_TYPES } from "../../../gateway/methods/attachments.ts";
import { ALGORITHM, signingKey } from "../key.ts";
import { canPush } from "./push.ts";

/** Path of the public key with which cards are signed. */
export const KEYS_PATH = "/a2a/jwks.json";

function makeCard(agent: AgentSettings, settings: Settings, origin: string, version: string): AgentCard {
  const { a2a } = settings;
  const name = agent.name ?? agent.id;
  const description = a2a.descriptions[agent.id] ?? `The agent ${name} of a Parley gateway.`;
  const url = `${origin}/a2a/${encodeURIComponent(agent.id)}`;
  const place = { url, tenant: "", protocolVersion: "1.0" };
  const bearer = { description: "A token of the gateway.", scheme: "Bearer", bearerFormat: "" };
  const skill = { id: agent.id, name, description, tags: ["agent"], examples: [] };
  return {
    name,
    description,
    version,
    provider: undefined,
    supportedInterfaces: [
      { ...place, protocolBinding: "JSONRPC" },
      { ...place, protocolBinding: "HTTP+JSON" },
    ],
    capabilities: {
      streaming: true,
      pushNotifications: canPush(settings),
      extendedAgentCard: false,
      extensions: [],
    },
    securitySchemes: { bearer: { scheme: { $case: "httpAuthSecurityScheme", value: bearer } } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: ["text/plain", "application/json", ...IMAGE_TYPES],
    defaultOutputModes: ["text/plain"],
    skills: [{ ...skill, inputModes: [], outputModes: [], securityRequirements: [] }],
    signatures: [],
  };
}

export type Cards = ReturnType<typeof createCards>;

/** Creates the cards of a gateway's agents. */
export function createCards(deps: BasicDeps, version: string) {
  const key = once(() => signingKey(deps.engine.store, deps.engine.now()));
  return {
    /** Returns the signed card of an agent, as JSON. `origin`: the gateway's address for this client. */
    async card(agent: AgentSettings, origin: string): Promise<unknown> {
      const { privateKey, publicKey } = await key();
      const header = { alg: ALGORITHM, typ: "JOSE", kid: publicKey.kid, jku: `${origin}${KEYS_PATH}` };
      const sign = generateAgentCardSignature(privateKey, header);
      return AgentCard.toJSON(await sign(makeCard(agent, deps.settings, origin, version)));
    },
    /** Returns the tag of an agent's card. It is of the content, because each signature is another. */
    async etag(agent: AgentSettings, origin: string): Promise<string> {
      const { publicKey } = await key();
      const content = JSON.stringify([makeCard(agent, deps.settings, origin, version), publicKey.kid]);
      return `"${createHash("sha256").update(content).digest("base64url")}"`;
    },
    /** Returns the public key as a JSON Web Key Set. */
    keys: async () => ({ keys: [(await key()).publicKey] }),
  };
}
