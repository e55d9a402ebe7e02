// The limit of peers, for the tests of limits that two transactions reach at the same time.

import { invitePeer } from "../../../src/features/a2a/peers/pairing.ts";
import { PEERS_MAX } from "../../../src/features/a2a/peers/peer.ts";
import type { Add } from "../../flows/add-row.ts";

const peer: Add = async (app, at, then) =>
  (await invitePeer(app, { name: `peer-${at}`, exposes: [] }, then)).ok;

export const limits = [["peers", PEERS_MAX, peer]] as const;
