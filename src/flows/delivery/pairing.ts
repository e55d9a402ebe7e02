// Pairs unknown people with a channel account: the person gets a code, and an operator approves it.
// PR1: an unknown person can cause at most one row and one message in ten minutes, and an account has a
//      limited number of open pairings, so strangers can't fill a disk by writing. At the limit, the person
//      who was notified longest ago is forgotten after ten minutes, so a crowd of strangers locks no one out
//      for long.
// PR2: a code can be approved or rejected once, within an hour; afterwards it is unknown.
// PR3: messages to the person go through the outbox, in the transaction that decides (I5).

import { createHash } from "node:crypto";
import { keyRulesOf } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Route } from "../../core/shapes/route.ts";
import { mainKeyOf } from "../../core/shapes/session-key.ts";
import { accountOf } from "../../core/shapes/settings/channels.ts";
import { defaultAgent, findAgent, type Settings } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { takeAdvisoryLock } from "../../store/locks.ts";
import {
  type ChannelPeer,
  deletePeer,
  forgetStalestAsk,
  holdPeer,
  holdPeerOfCode,
  listPeers,
  openAsks,
  type PeerId,
  putPeer,
} from "../../store/queries/channels/channel-peers.ts";
import type { Db } from "../../store/sql.ts";
import { queueNote } from "./outbox.ts";

export interface PairingParts {
  readonly engine: Engine;
  readonly settings: Settings;
}

/** Letters of a code, without `I`, `L`, `O`, `0` and `1`, because people read codes out and type them. */
const LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const CODE_LENGTH = 8;
const CODE_MS = 3_600_000;
const TELL_AGAIN_MS = 600_000;
/**
 * Maximum number of open pairings of an account. At the limit, a new stranger gets no answer until a pairing
 * is decided or ten minutes old.
 */
const OPEN_MAX = 20;
const LISTED_MAX = 1_000;

/** Normalises a code that a person typed. */
export function normalizeCode(code: string): string {
  return code.toUpperCase().replaceAll(/[\s-]/g, "");
}

/** Returns a random code of this length. */
export function newCode(unit: Pick<Unit, "newId">, length: number): string {
  let number = BigInt(`0x${createHash("sha256").update(unit.newId()).digest("hex")}`);
  let code = "";
  while (code.length < length) {
    code += LETTERS[Number(number % BigInt(LETTERS.length))] ?? "";
    number /= BigInt(LETTERS.length);
  }
  return code;
}

/** Returns the agent that answers a person: that of the account. */
export function agentOfPeer(settings: Settings, who: PeerId): string {
  const account = accountOf(settings.channels, who);
  const agent = account?.agentId === undefined ? undefined : findAgent(settings, account.agentId);
  return (agent ?? defaultAgent(settings)).id;
}

/** Returns the session for notes about a person: the main session of the agent. */
function filedUnder(settings: Settings, who: PeerId): string {
  return mainKeyOf(agentOfPeer(settings, who), keyRulesOf(settings));
}

/** Returns whether a person was notified recently, so that the notice is not sent again. */
export function wasToldLately(known: Pick<ChannelPeer, "toldAt"> | undefined, now: number): boolean {
  return known !== undefined && known.toldAt > now - TELL_AGAIN_MS;
}

/** Sends a stranger a code and the steps to be approved, unless that was done recently. */
export async function askToPair(
  parts: Pick<PairingParts, "settings">,
  unit: Unit,
  stranger: PeerId & { readonly name?: string; readonly route: Route },
): Promise<void> {
  const { now } = unit;
  const known = await holdPeer(unit.tx, stranger);
  if (known !== undefined && (known.state !== "pending" || wasToldLately(known, now))) return;
  const isOpen = known?.code !== undefined && known.askedAt > now - CODE_MS;
  if (!isOpen) {
    await takeAdvisoryLock(unit.tx, "limits");
    const isFull = (await openAsks(unit.tx, stranger, now - CODE_MS)) >= OPEN_MAX;
    // Makes room by forgetting the person who was notified longest ago, if that was not recently.
    if (isFull && !(await forgetStalestAsk(unit.tx, stranger, now - TELL_AGAIN_MS))) return;
  }
  const code = isOpen ? (known.code ?? "") : newCode(unit, CODE_LENGTH);
  const { name, route, ...who } = stranger;
  const times = { askedAt: isOpen ? known.askedAt : now, toldAt: now };
  await putPeer(unit.tx, { ...who, state: "pending", code, route, ...times, ...optional({ name }) });
  const sessionKey = filedUnder(parts.settings, stranger);
  const text = [
    "I do not know you yet, so I can't answer you.",
    `Your code is \`${code}\`; it is valid for one hour. Give it to the person who runs this gateway:`,
    `\`npx parley-gateway channels pair approve ${code}\`, or \`/pair approve ${code}\` from an owner, ` +
      "lets you in.",
  ].join("\n");
  await queueNote(unit, { sessionKey, route, text, about: "pairing" });
}

/** Approves or rejects the person who has the code, in the given transaction, or in a new one. */
async function decide(
  parts: PairingParts,
  code: string,
  state: "approved" | "blocked",
  unit: Unit | undefined,
): Promise<Result<ChannelPeer>> {
  const work = async (within: Unit): Promise<Result<ChannelPeer>> => {
    const asked = await holdPeerOfCode(within.tx, normalizeCode(code));
    if (asked === undefined || asked.askedAt <= within.now - CODE_MS)
      return fail("pairing_not_found", "there is no open pairing with this code", {
        hint: "A code is valid for one hour; the person gets a new one with the next message.",
      });
    const { code: _, ...known } = asked;
    const decided: ChannelPeer = { ...known, state, decidedAt: within.now };
    await putPeer(within.tx, decided);
    const sessionKey = filedUnder(parts.settings, decided);
    within.publish({ kind: "session", sessionKey, change: "state" });
    if (state === "approved" && decided.route !== undefined) {
      const text = "You have been let in. Write to me whenever you like.";
      await queueNote(within, { sessionKey, route: decided.route, text, about: "pairing" });
    }
    return ok(decided);
  };
  return unit === undefined ? parts.engine.commit(work) : work(unit);
}

/** Approves the person who has this code. If it fails, a given transaction is unchanged. */
export function approvePairing(parts: PairingParts, code: string, unit?: Unit): Promise<Result<ChannelPeer>> {
  return decide(parts, code, "approved", unit);
}

/** Blocks the person who has this code permanently. The person is not notified. */
export function rejectPairing(parts: PairingParts, code: string, unit?: Unit): Promise<Result<ChannelPeer>> {
  return decide(parts, code, "blocked", unit);
}

/** Removes an approved or blocked person, who is unknown from then on. */
export async function removePeer(unit: Unit, who: PeerId): Promise<Result<ChannelPeer>> {
  const known = await holdPeer(unit.tx, who);
  if (known !== undefined && (await deletePeer(unit.tx, who))) return ok(known);
  const { channel, accountId, peerId } = who;
  const shown = quoted(peerId, 100);
  return fail("pairing_not_found", `${shown} is unknown at ${channel}:${accountId}`);
}

/** Lists the known people of all accounts, and those who wait with a valid code. */
export async function listPairings(db: Db, now: number): Promise<ChannelPeer[]> {
  const peers = await listPeers(db, LISTED_MAX);
  return peers.filter(({ state, askedAt }) => state !== "pending" || askedAt > now - CODE_MS);
}
