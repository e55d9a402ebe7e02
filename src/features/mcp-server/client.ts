// Identifies the client behind an MCP request: its session, and its rights.
// Nothing about a client is kept between two requests: each request identifies its sender, so any process can
// answer it. The transport's session id only contains the client's name. The store remembers the ids that
// clients have ended.
// A client has its token's rights and its own session's identity. When a client acts as another session, it
// has that session's rights, limited by the rights of its token.

import { type AccessContext, operatorViewer } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { spawnChainOf } from "../../access/spawn-chain.ts";
import { optional } from "../../core/optional.ts";
import type { SpawnChain } from "../../core/rules/sandbox-policy.ts";
import { identityOf, type Viewer } from "../../core/rules/visibility.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Session } from "../../core/shapes/session.ts";
import { parseKey } from "../../core/shapes/session-key.ts";
import {
  type AgentSettings,
  agentOf,
  defaultAgent,
  findAgent,
  notConfigured,
} from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { openExternal } from "../../flows/session/external.ts";
import { type Caller, JOIN_AGAIN } from "../../gateway/auth.ts";
import type { BasicDeps } from "../../gateway/call.ts";
import { sessionOfPass, viewerAs } from "../../gateway/pass.ts";
import { isRevoked, revoke } from "../../gateway/session-tokens.ts";

const HANDLE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const HANDLE_CHARS_MAX = 64;
const CLIENT_NAME_MAX_CHARS = 512;
/** The handle of a client that sends neither a handle nor its name. */
const NAMELESS = "client";
/** `agent:handle:connection`, as `connectionId` writes it; with a mark for each kind of question. */
const CONNECTION = /^([a-z0-9_-]{1,64}):([A-Za-z0-9][A-Za-z0-9._-]{0,63}):[0-9a-f-]{36}(:asks)?(:samples)?$/;

/** A client does not use an id that it has ended, so it is remembered for a short time. */
const ENDED_MS = 86_400_000;

const noConnection = (): Failure =>
  fail("session_not_found", "this MCP session does not exist or has ended", {
    hint: "Initialize a new one.",
  });

/** The kinds of questions that a client takes: forms for its user, and prompts for its model. */
export interface Askable {
  readonly forms: boolean;
  readonly samples: boolean;
}

/** Fields with which a request identifies its sender; all are optional. */
export interface McpWishes {
  /** The client's stable name. Default: derived from the client's own name. */
  readonly handle?: string;
  /** The agent of its external session. Default: the default agent. */
  readonly agentId?: string;
  /** Session to act as, instead of the client's own session. */
  readonly sessionKey?: string;
  /** The transport's session id, from an earlier `initialize`. */
  readonly connectionId?: string;
  /** The client's own name: on `initialize`, or in each request of a newer revision. */
  readonly clientName?: string;
}

/** The client of a request. */
export interface McpClient {
  readonly caller: Caller;
  readonly session: Session;
  readonly agent: AgentSettings;
  readonly chain: SpawnChain;
  readonly viewer: Viewer;
  /** The client's handle. Absent if the client acts as another session. */
  readonly handle?: string;
}

/** Derives a handle from a client's own name: the same name gives the same handle. */
function handleFrom(name: string | undefined): string {
  // Cuts the name first, to limit the work.
  const plain = (name ?? "")
    .slice(0, CLIENT_NAME_MAX_CHARS)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replaceAll(/^[^a-z0-9]+|-+$/g, "");
  const handle = plain.slice(0, HANDLE_CHARS_MAX);
  return HANDLE.test(handle) ? handle : NAMELESS;
}

/**
 * Returns the name under which people see a client: its own, after its handle if a person chose one. So two
 * windows of one program are told apart.
 */
function shownName(handle: string, clientName: string | undefined): string | undefined {
  if (clientName === undefined) return undefined;
  const derived = handleFrom(clientName);
  if (handle === derived) return clientName;
  return handle.startsWith(derived) ? handle : `${handle} (${clientName})`;
}

interface Name {
  readonly agentId: string;
  readonly handle: string;
}

function nameOf(deps: BasicDeps, wishes: McpWishes): Result<Name> {
  const { handle, agentId, connectionId, clientName } = wishes;
  if (handle !== undefined && !HANDLE.test(handle)) {
    const shown = quoted(handle, 80);
    return fail("invalid_argument", `the handle ${shown} is invalid`, {
      hint: `Use 1 to ${HANDLE_CHARS_MAX} of A-Z, a-z, 0-9, ".", "_", "-", and begin with a letter or digit.`,
    });
  }
  const known = CONNECTION.exec(connectionId ?? "");
  const agent = agentId?.trim().toLowerCase() ?? known?.[1] ?? defaultAgent(deps.settings).id;
  return ok({ agentId: agent, handle: handle ?? known?.[2] ?? handleFrom(clientName) });
}

/**
 * Returns the transport's session id for a client: its handle, and an id that is unique to this connection.
 */
export function connectionId(
  client: McpClient,
  uuid: string,
  { forms, samples }: Askable,
): string | undefined {
  if (client.handle === undefined) return undefined;
  const marks = `${forms ? ":asks" : ""}${samples ? ":samples" : ""}`;
  return `${client.session.agentId}:${client.handle}:${uuid}${marks}`;
}

/** Returns the kinds of questions that the client of this transport session takes. */
export function askableBy(connection: string | null): Askable {
  const [, , , forms, samples] = CONNECTION.exec(connection ?? "") ?? [];
  return { forms: forms !== undefined, samples: samples !== undefined };
}

/** Names a connection among those of its caller, who alone can end it. */
const ownedConnection = (caller: Caller, id: string): string => `${caller.id} ${id}`;

/** Ends the transport session of this id: later requests of the caller with it are refused. */
export async function endConnection({ engine }: BasicDeps, caller: Caller, id = ""): Promise<Result<void>> {
  if (!CONNECTION.test(id)) return noConnection();
  await engine.commit((unit) => revoke(unit, ownedConnection(caller, id), ENDED_MS));
  return ok(undefined);
}

/**
 * Returns a client that acts as another session, with that session's rights, limited by the rights of the
 * token.
 */
async function actAs(deps: BasicDeps, caller: Caller, sessionKey: string): Promise<Result<McpClient>> {
  const { settings, engine } = deps;
  const access: AccessContext = { db: engine.store.db, settings };
  const token = operatorViewer(caller.scopes, caller.patterns);
  const found = await resolveSession(access, token, "read", { sessionKey });
  if (!found.ok) return found;
  const session = found.value;
  if (findAgent(settings, session.agentId) === undefined)
    return fail("agent_not_found", notConfigured(session.agentId));
  const chain = await spawnChainOf(access.db, session);
  const viewer: Viewer = { ...token, as: identityOf(chain, settings) };
  return ok({ caller, session, agent: agentOf(settings, session), chain, viewer });
}

/** Returns the client of a program that works for a session: it has exactly that session's rights. */
async function withPass(
  deps: BasicDeps,
  caller: Caller,
  actsAs: string,
  sessionKey: string | undefined,
): Promise<Result<McpClient>> {
  const { settings, engine } = deps;
  const found = await sessionOfPass(engine.store.db, actsAs, sessionKey);
  if (!found.ok) return found;
  const session = found.value;
  const chain = await spawnChainOf(engine.store.db, session);
  const token = operatorViewer(caller.scopes, caller.patterns);
  const viewer = viewerAs(caller, token, chain, settings);
  return ok({ caller, session, agent: agentOf(settings, session), chain, viewer });
}

/** Returns the client of a token that is valid for one session. Its first request creates the session. */
async function onlyAs(
  deps: BasicDeps,
  caller: Caller,
  { sessionKey: key, series }: NonNullable<Caller["onlyAs"]>,
  { sessionKey, handle, agentId, clientName }: McpWishes,
): Promise<Result<McpClient>> {
  const { settings } = deps;
  if (await isRevoked(deps.engine.store.db, series))
    return fail("unauthorized", "the token of this session was revoked", { hint: JOIN_AGAIN });
  const parsed = parseKey(key);
  if (!parsed.ok || parsed.value.form !== "external")
    return fail("invalid_argument", `${quoted(key, 80)} is not the session of a program`);
  const { agentId: ownAgent, id } = parsed.value;
  const isOther = (sessionKey ?? key) !== key || (handle ?? id) !== id || (agentId ?? ownAgent) !== ownAgent;
  if (isOther) return fail("not_visible", `this token is valid for session ${key} only`);
  const token = operatorViewer(caller.scopes, caller.patterns);
  const named = { agentId: ownAgent, handle: id, ...optional({ name: shownName(id, clientName) }) };
  const opened = await openExternal(deps, token, named);
  if (!opened.ok) return opened;
  const session = opened.value;
  const viewer: Viewer = { ...token, as: identityOf([session], settings) };
  return ok({ caller, session, agent: agentOf(settings, session), chain: [session], viewer, handle: id });
}

/** Returns the client behind a request. Its first request creates its session. */
export async function identify(
  deps: BasicDeps,
  caller: Caller,
  wishes: McpWishes,
): Promise<Result<McpClient>> {
  if (caller.role !== "operator") {
    return fail("missing_scope", `a token of role "${caller.role}" is not accepted here`, {
      hint: "Use a token with role operator (gateway.auth.tokens).",
    });
  }
  const { sessionKey, handle, agentId, connectionId: id = "" } = wishes;
  const { db } = deps.engine.store;
  if (CONNECTION.test(id) && (await isRevoked(db, ownedConnection(caller, id)))) return noConnection();
  if (caller.actsAs !== undefined) return withPass(deps, caller, caller.actsAs, sessionKey);
  if (caller.onlyAs !== undefined) return onlyAs(deps, caller, caller.onlyAs, wishes);
  if (sessionKey !== undefined) {
    if (handle === undefined && agentId === undefined) return actAs(deps, caller, sessionKey);
    return fail("invalid_argument", "give either a session to act as, or a handle and an agent");
  }
  const name = nameOf(deps, wishes);
  if (!name.ok) return name;
  const token = operatorViewer(caller.scopes, caller.patterns);
  const opened = await openExternal(deps, token, {
    ...name.value,
    ...optional({ name: shownName(name.value.handle, wishes.clientName) }),
  });
  if (!opened.ok && opened.code === "not_visible") {
    const hint = "Use a handle (x-parley-handle) whose session the token's patterns cover.";
    return { ...opened, hint };
  }
  if (!opened.ok) return opened;
  const session = opened.value;
  const viewer: Viewer = { ...token, agentId: session.agentId };
  const agent = agentOf(deps.settings, session);
  return ok({ caller, session, agent, chain: [session], viewer, handle: name.value.handle });
}
