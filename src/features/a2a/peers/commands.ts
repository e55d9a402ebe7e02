// Commands about peers.

import type { Cli } from "../../../cli/cli.ts";
import { asks, type Commands, option } from "../../../cli/row.ts";
import type { PeerEntry } from "./contract.ts";

const agentsText = (ids: readonly string[]): string => (ids.length === 0 ? "none" : ids.join(", "));

function sayPeer(cli: Cli, { name, exposes, offers }: PeerEntry): void {
  cli.say(`It may write to: ${agentsText(exposes)}. You may write to: ${agentsText(offers)}.`);
  const [first] = offers;
  if (first !== undefined) cli.say(`Address of an agent there: peer:${name}/agent:${first}:main`);
}

const PEER = { "<peer>": "Name of the peer" };
const EXPOSE = option("<agent...>", "Let the peer write to these agents (default: none)");

const commands: Commands = {
  list: asks({
    summary: "List peers and their agents",
    isDefault: true,
    ask: (link) => link.request("peers.list", {}),
    print(cli, { peers }) {
      cli.table(
        peers,
        {
          NAME: ({ name }) => name,
          ADDRESS: ({ url }) => url ?? "-",
          STATE: ({ state, problem }) => (problem === undefined || state === "refused" ? state : "away"),
          "IT SEES": ({ exposes }) => agentsText(exposes),
          "YOU SEE": ({ offers }) => agentsText(offers),
        },
        "No peers. Pair with another gateway: npx parley-gateway peer invite NAME, there",
      );
      for (const { name, problem } of peers) if (problem !== undefined) cli.say(`${name}: ${problem}`);
    },
  }),
  invite: asks({
    summary: "Make a pairing code for another gateway",
    args: { "<name>": "Name for the other gateway" },
    options: {
      expose: EXPOSE,
      address: option("<url>", "Address of the other gateway, to write to its agents"),
    },
    ask: (link, { name, address: url, expose: agents }) => link.request("peers.add", { name, url, agents }),
    print(cli, { code = "", peer }) {
      cli.say(`Invited ${peer.name}. It may write to: ${agentsText(peer.exposes)}.`);
      const command = `npx parley-gateway peer add URL --name NAME --code ${code}`;
      cli.line(`At the other gateway, within ten minutes: ${command}`);
    },
  }),
  add: asks({
    summary: "Pair with a gateway that made a pairing code",
    args: { "<url>": "Address of the other gateway" },
    options: {
      name: option("<name>", "Set the name of the other gateway here"),
      code: option("<code>", "Use this pairing code"),
      expose: EXPOSE,
    },
    misuse: ({ name, code }) =>
      name !== undefined && code !== undefined
        ? undefined
        : {
            error: "--name and --code are required",
            hint: "The other gateway makes the code: npx parley-gateway peer invite NAME --expose AGENT",
          },
    ask: (link, { url, name, code, expose: agents }) =>
      link.request("peers.add", { url, name, code, agents }),
    print(cli, { peer }) {
      cli.say(`Paired with ${peer.name}.`);
      sayPeer(cli, peer);
    },
  }),
  expose: asks({
    summary: "Let a peer write to these agents, and to no others",
    args: { ...PEER, "[agents...]": "Agents" },
    options: { address: option("<url>", "Set the address of the peer") },
    ask: (link, { peer: name, agents, address: url }) =>
      link.request("peers.update", {
        name,
        agents: agents.length === 0 && url !== undefined ? undefined : agents,
        url,
      }),
    print: (cli, { peer }) => sayPeer(cli, peer),
  }),
  remove: asks({
    summary: "Remove a peer",
    args: PEER,
    ask: (link, { peer: name }) => link.request("peers.remove", { name }),
    print: (cli, { name }) => cli.say(`Removed the peer ${name}.`),
  }),
};

export const PEERS: Commands = {
  peer: { summary: "Manage peers (other gateways whose agents talk with yours)", commands },
};
