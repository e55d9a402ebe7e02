// Owns how a stranger at a channel is let in: a code that the stranger is told, and an operator who decides.
// PR1: who is not known can make the gateway keep one row and say one sentence in ten minutes, and of an
//      account so many at most are open at once: nobody fills a disk by writing. Where all are, whoever was
//      told longest ago makes room after ten minutes: many who ask keep nobody else out for long.
// PR2: a code is decided on once, within an hour; afterwards it is as unknown as one that never was.
// PR3: what the person is told goes through the outbox, in the unit that decides (I5).

import { createHash } from "node:crypto";
import { accountOf } from "../core/channel-settings.ts";
import { type Failure, fail, ok, type Result } from "../core/errors.ts";
import type { Route } from "../core/route.ts";
import { mainKeyOf } from "../core/session-key.ts";
import { defaultAgent, findAgent, type Settings } from "../core/settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
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
} from "../store/channel-peers.ts";
import type { Db } from "../store/sql.ts";
import { keyRulesOf } from "./access.ts";
import { type Outbound, queueNote } from "./outbox.ts";

export interface PairingParts {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly outbound: Outbound;
}

/** No `I`, `L`, `O`, `0` or `1`: a code is read out and typed. */
const LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const CODE_LENGTH = 8;
const CODE_MS = 3_600_000;
const TELL_AGAIN_MS = 600_000;
/** Of one account; who comes then hears nothing until one of them is decided on, or has been told a while. */
const OPEN_MAX = 20;
const LISTED_MAX = 1_000;

function newCode(unit: Unit): string {
  const digest = createHash("sha256").update(unit.newId()).digest();
  let number = digest.readBigUInt64BE(0);
  let code = "";
  while (code.length < CODE_LENGTH) {
    code += LETTERS[Number(number % BigInt(LETTERS.length))] ?? "";
    number /= BigInt(LETTERS.length);
  }
  return code;
}

/** Somebody who writes directly and is not known. */
interface Stranger extends PeerId {
  readonly name?: string;
  /** Where the answer goes. */
  readonly route: Route;
}

function askedWords(code: string): string {
  return [
    "I do not know you yet, so I can't answer you.",
    `Your code is \`${code}\`; it is valid for one hour. Give it to whoever runs this gateway:`,
    `\`parley channels pair approve ${code}\`, or \`/pair approve ${code}\` from an owner, lets you in.`,
  ].join("\n");
}

/** The session that a note about somebody is filed under: the main one of the account's agent. */
function filedUnder(settings: Settings, who: PeerId): string {
  const account = accountOf(settings.channels, who);
  const agent = account?.agentId === undefined ? undefined : findAgent(settings, account.agentId);
  return mainKeyOf((agent ?? defaultAgent(settings)).id, keyRulesOf(settings));
}

/** Whether somebody was told a moment ago: nothing is said again. */
export function wasToldLately(known: Pick<ChannelPeer, "toldAt"> | undefined, now: number): boolean {
  return known !== undefined && known.toldAt > now - TELL_AGAIN_MS;
}

/** Whether one more may be open; where all are, the stalest of them is forgotten. */
async function hasRoom(unit: Unit, account: Omit<PeerId, "peerId">): Promise<boolean> {
  const { tx, now } = unit;
  if ((await openAsks(tx, account, now - CODE_MS)) < OPEN_MAX) return true;
  return forgetStalestAsk(tx, account, now - TELL_AGAIN_MS);
}

/** Tells a stranger how to be let in, unless that was done a moment ago. */
export async function askToPair(
  parts: Pick<PairingParts, "settings" | "outbound">,
  unit: Unit,
  stranger: Stranger,
): Promise<void> {
  const { now } = unit;
  const known = await holdPeer(unit.tx, stranger);
  if (known !== undefined && (known.state !== "pending" || wasToldLately(known, now))) return;
  const isOpen = known?.code !== undefined && known.askedAt > now - CODE_MS;
  if (!isOpen && !(await hasRoom(unit, stranger))) return;
  const code = isOpen ? (known.code ?? "") : newCode(unit);
  const { channel, accountId, peerId, name, route } = stranger;
  await putPeer(unit.tx, {
    ...{ channel, accountId, peerId, state: "pending", code, route },
    askedAt: isOpen ? known.askedAt : now,
    toldAt: now,
    ...(name === undefined ? {} : { name }),
  });
  const sessionKey = filedUnder(parts.settings, stranger);
  await queueNote(parts, unit, { sessionKey, route, text: askedWords(code), about: "pairing" });
}

function notFound(): Failure {
  return fail("pairing_not_found", "there is no open pairing with this code", {
    hint: "A code is valid for one hour; the person gets a new one with the next message.",
  });
}

/** Codes are typed by people. */
function typed(code: string): string {
  return code.toUpperCase().replaceAll(/[\s-]/g, "");
}

/** Decides on whoever has the code, in the unit if there is one. */
async function decide(
  parts: PairingParts,
  code: string,
  state: "approved" | "blocked",
  unit: Unit | undefined,
): Promise<Result<ChannelPeer>> {
  const work = async (within: Unit): Promise<Result<ChannelPeer>> => {
    const asked = await holdPeerOfCode(within.tx, typed(code));
    if (asked === undefined || asked.askedAt <= within.now - CODE_MS) return notFound();
    const { code: _, ...known } = asked;
    const decided: ChannelPeer = { ...known, state, decidedAt: within.now };
    await putPeer(within.tx, decided);
    if (state === "approved" && decided.route !== undefined) {
      const text = "You have been let in. Write to me whenever you like.";
      const sessionKey = filedUnder(parts.settings, decided);
      await queueNote(parts, within, { sessionKey, route: decided.route, text, about: "pairing" });
    }
    return ok(decided);
  };
  return unit === undefined ? parts.engine.commit(work) : work(unit);
}

/** Lets in whoever was told this code. In a unit that is given, a failure has changed nothing. */
export function approvePairing(parts: PairingParts, code: string, unit?: Unit): Promise<Result<ChannelPeer>> {
  return decide(parts, code, "approved", unit);
}

/** Keeps out whoever was told this code, for good; nothing is said. */
export function rejectPairing(parts: PairingParts, code: string, unit?: Unit): Promise<Result<ChannelPeer>> {
  return decide(parts, code, "blocked", unit);
}

/** Somebody who was let in, or kept out, is a stranger again. */
export async function removePeer(unit: Unit, who: PeerId): Promise<Result<ChannelPeer>> {
  const known = await holdPeer(unit.tx, who);
  if (known !== undefined && (await deletePeer(unit.tx, who))) return ok(known);
  const { channel, accountId, peerId } = who;
  const shown = JSON.stringify(peerId.slice(0, 100));
  return fail("pairing_not_found", `nothing is known of ${shown} at ${channel}:${accountId}`);
}

/** Everybody who is known at any account; of those who asked, those whose code is still valid. */
export async function listPairings(db: Db, now: number): Promise<ChannelPeer[]> {
  const peers = await listPeers(db, LISTED_MAX);
  return peers.filter(({ state, askedAt }) => state !== "pending" || askedAt > now - CODE_MS);
}
