// Names the labels of texts that calls read, and the effects of calls outside of their session: the sinks of
// core/rules/labels/labels.ts.
// SI1: an address that the session has read as it is carries no private text, so it is free. But a page can
//      list many addresses and ask for one after the other, so only some of each site are.
// SI2: a message to the place or the session that the run came from is its answer, not a sink.
// SI3: a session in which strangers have a say, and an agent elsewhere, are places outside.

import { spawnChainOf } from "../../access/spawn-chain.ts";
import { optional } from "../../core/optional.ts";
import { readApproval } from "../../core/rules/approval/policy.ts";
import { labelFrom, labelModeFor } from "../../core/rules/labels/labels.ts";
import { openToStrangers } from "../../core/rules/prompt/memory.ts";
import { isSandboxed } from "../../core/rules/sandbox-policy.ts";
import type { Label, Labels, Sink } from "../../core/shapes/labels.ts";
import type { Message } from "../../core/shapes/message.ts";
import type { Route } from "../../core/shapes/route.ts";
import type { Session } from "../../core/shapes/session.ts";
import { peerInKey } from "../../core/shapes/session-key.ts";
import { findAgent, type Settings } from "../../core/shapes/settings/settings.ts";
import { matchesAny } from "../../core/text/pattern.ts";
import { announceRoute } from "../../flows/conversation/party.ts";
import { leadToSamePlace, type NamedPlace } from "../../flows/delivery/destination.ts";
import { allowedFiles } from "../../store/queries/permission-rules.ts";
import { lastMessages } from "../../store/queries/transcripts/transcripts.ts";
import type { SinkContext } from "../tool.ts";
import { fileSource } from "./files.ts";

/** Messages in which an address is looked up. */
const MESSAGES_MAX = 200;
/** Addresses that are free in these messages (SI1): of one site, and of all. */
const GIVEN_OF_SITE_MAX = 10;
const GIVEN_MAX = 20;

const hostOf = (url: unknown): string | undefined =>
  typeof url === "string" && URL.canParse(url) ? new URL(url).host : undefined;

/** Returns the part of a host's name that somebody has registered, approximately. */
function siteOf(url: string): string {
  const { hostname } = new URL(url);
  return /^[\d.]+$|:/.test(hostname) ? hostname : hostname.split(".").slice(-2).join(".");
}

const textOf = (message: Message): string =>
  typeof message.content === "string"
    ? message.content
    : message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");

/**
 * Returns whether somebody else wrote the text: a person, a page or a search, not a model. A job that a
 * person made has a session of its own; an agent's job runs in the agent's session.
 */
const isGiven = (message: Message, { key }: Session): boolean =>
  (message.role === "user" &&
    (message.provenance === undefined ||
      (message.provenance.kind === "cron" && key === `cron:${message.provenance.source}`))) ||
  (message.role === "toolResult" && (message.toolName === "fetch" || message.toolName === "search"));

/** Returns whether a text has the address as a whole. */
const hasAddress = (text: string, url: string): boolean =>
  text.split(/[\s"'<>()[\]{}\\|]+/).some((word) => word === url || word.replace(/[.,;:!?]+$/, "") === url);

/** Returns the sink of a fetch, or undefined if the session was given its address (SI1). */
export async function fetchSink({ db, session }: SinkContext, url: string): Promise<Sink | undefined> {
  const host = hostOf(url);
  if (host === undefined) return undefined;
  const sink = { kind: "fetch", to: host, payload: url } as const;
  const messages = await lastMessages(db, session.sessionId, MESSAGES_MAX, { includeTools: true });
  const calls = messages.flatMap((message) =>
    message.role === "assistant" ? message.content.filter((block) => block.type === "toolCall") : [],
  );
  const addresses = calls.map(({ name, arguments: args }) => (name === "fetch" ? args.url : undefined));
  const fetched = [...new Set(addresses)].filter((one) => hostOf(one) !== undefined) as string[];
  const ofSite = fetched.filter((one) => siteOf(one) === siteOf(url));
  if (fetched.length > GIVEN_MAX || ofSite.length > GIVEN_OF_SITE_MAX) return sink;
  return messages.some((one) => isGiven(one, session) && hasAddress(textOf(one), url)) ? undefined : sink;
}

/** Returns whether commands of the session reach neither the network nor files outside of its workspace. */
export const containsCommands = ({
  agent,
  chain,
  settings,
}: Pick<SinkContext, "agent" | "chain" | "settings">) =>
  isSandboxed(chain, settings) && !agent.sandbox.network;

/**
 * Returns the sink of a command, unless something contains it, it only reads, or an owner is asked about it
 * anyway. An owner's rule for the command says nothing about the content that it reads now.
 */
export async function execSink(ctx: SinkContext, command: string): Promise<Sink | undefined> {
  const { agent, chain, settings, session, db } = ctx;
  if (containsCommands(ctx)) return undefined;
  const folder = agent.workspace;
  const reading = readApproval(chain, settings, { command, folder });
  if (reading.kind === "free") return undefined;
  const ruled = { agentId: session.agentId, sessionKey: session.key, command, folder, ofAgent: true };
  const isAsked = reading.kind === "asks" && (await allowedFiles(db, ruled)).length === 0;
  if (isAsked && labelModeFor(chain, settings) !== "deny") return undefined;
  return { kind: "exec", to: "this machine", payload: command, reads: "file of the workspace" };
}

const placeName = ({ channel, to }: Pick<Route, "channel" | "to">): string => `${channel}:${to}`;

/** Returns the sink of a message to a chat (SI2). */
export function messageSink(
  { settings, session, run }: SinkContext,
  { channel, to, accountId, threadId }: NamedPlace & { readonly channel: string },
  payload: string,
): Sink | undefined {
  const place = {
    channel,
    to,
    ...optional({ accountId, threadId: threadId === undefined ? undefined : String(threadId) }),
  };
  const home = [announceRoute(session), run?.route, run?.input.replyTo];
  if (home.some((one) => one !== undefined && leadToSamePlace(settings, one, place))) return undefined;
  const where = [accountId, threadId].filter((one) => one !== undefined).join(" ");
  return { kind: "message", to: placeName(place), payload: where === "" ? payload : `(${where}) ${payload}` };
}

/** Returns the sink of a file that is sent to the session's own chat, which strangers may read. */
export async function fileSink(
  { session, agent }: SinkContext,
  path: string,
  caption: string,
): Promise<Sink | undefined> {
  const route = announceRoute(session);
  if (route === undefined) return undefined;
  const payload = caption === "" ? path : `${path}: ${caption}`;
  return { kind: "message", to: placeName(route), payload, reads: await fileSource(agent.workspace, path) };
}

/** Returns whether somebody who is no owner may read a session: a stranger in a chat, or a limited token. */
async function isRead({ db, settings, chain: own }: SinkContext, target: Session): Promise<boolean> {
  const { tokens } = settings.gateway;
  if (tokens.some(({ sessions = [] }) => matchesAny(sessions, target.key))) return true;
  const chain = await spawnChainOf(db, target);
  // A sub-agent of the same work answers there.
  const isOwnWork = target.spawnedBy !== undefined && chain.at(-1)?.key === own.at(-1)?.key;
  return !isOwnWork && openToStrangers(chain, settings) !== undefined;
}

/** Returns the sink of a task for an agent, if it works elsewhere or its program does as it likes (SI3). */
export function agentSink(settings: Settings, agentId: string, payload: string): Sink | undefined {
  const runtime = findAgent(settings, agentId)?.runtime;
  const isElsewhere = runtime?.type === "a2a" || runtime?.permissions === "allow";
  return isElsewhere ? { kind: "peer", to: agentId, payload } : undefined;
}

/** Returns the sink of a message for another session (SI3). */
export async function sessionSink(
  ctx: SinkContext,
  target: Session,
  payload: string,
): Promise<Sink | undefined> {
  const { key, agentId } = target;
  const provenance = ctx.run?.input.provenance;
  // The session that wrote the message gets the answer to it anyway.
  if (provenance?.kind === "inter_session" && provenance.sourceSessionKey === key) return undefined;
  if (peerInKey(key) !== undefined) return { kind: "peer", to: key, payload };
  const elsewhere = agentSink(ctx.settings, agentId, payload);
  if (elsewhere !== undefined) return elsewhere;
  return (await isRead(ctx, target)) ? { kind: "session", to: key, payload } : undefined;
}

/** Returns the label of a text that a call has read. */
export const readLabel = (
  { engine, run }: Pick<SinkContext, "engine" | "run">,
  label: Label,
  source: string | undefined,
): Labels | undefined =>
  source === undefined ? undefined : labelFrom(label, source, engine.now(), run?.runId);
