// Owns the methods about MCP servers and the programs of ACP agents.
// SV1: arguments, environment, headers and paths of addresses are never returned; secrets are redacted in
//      errors and names (I14).

import type { AcpAgentRow, McpServerRow, SERVER_METHODS } from "../../contract/methods/servers.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { agentIdInKey } from "../../core/shapes/session-key.ts";
import { type McpServerSettings, programOf } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { newestFailures } from "../../store/queries/agent-work.ts";
import type { SignIn } from "../../tools/mcp/sign-in/sign-in.ts";
import type { OutsideTools } from "../../tools/tool.ts";
import type { BasicDeps, CallContext, Methods } from "../call.ts";
import type { ChannelDeps } from "./channels.ts";

export interface ServerListDeps extends BasicDeps, Pick<ChannelDeps, "programs"> {
  /** MCP servers. Absent if none is configured. */
  readonly outside?: Pick<OutsideTools, "statuses" | "toolsOf" | "test" | "signIn"> | undefined;
}

type Context = CallContext<ServerListDeps>;

function rowOf({ deps }: Context, { name, reach, agents }: McpServerSettings): McpServerRow {
  const { redactor } = deps.world;
  const status = deps.outside?.statuses().find(({ server }) => server === name);
  const { tools = [], leftOut = [] } = deps.outside?.toolsOf(name) ?? {};
  const { state = "idle", connectedSince, backoffUntil, lastError, lastErrorAt } = status ?? {};
  const needsSignIn = status?.needsSignIn === true ? true : undefined;
  return {
    name,
    transport: reach.kind,
    place: redactor.mask(reach.kind === "stdio" ? reach.command : new URL(reach.url).origin),
    agents,
    state,
    ...redactor.all({ tools, leftOut, ...optional({ lastError }) }),
    ...optional({ connectedSince, backoffUntil, lastErrorAt, needsSignIn }),
  };
}

async function agentRows({ deps, access }: Context): Promise<AcpAgentRow[]> {
  const agents = deps.settings.agents.filter((agent) => programOf(agent) !== undefined);
  const running = deps.programs?.() ?? [];
  const mask = (text: string): string => deps.world.redactor.mask(text);
  const failures = agents.length === 0 ? [] : await newestFailures(access.db);
  return agents.map((agent) => {
    const { id } = agent;
    const failed = failures.find(({ agentId }) => agentId === id);
    return {
      agentId: id,
      program: mask(programOf(agent)?.[0] ?? ""),
      sessions: running.filter((key) => agentIdInKey(key) === id),
      ...optional({
        lastFailure: failed && { sessionKey: failed.sessionKey, atMs: failed.at, error: mask(failed.error) },
      }),
    };
  });
}

function find({ deps }: Context, name: string): Result<McpServerSettings> {
  const { servers } = deps.settings.tools.mcp;
  const server = servers.find((one) => one.name === name);
  if (server !== undefined) return ok(server);
  const names = servers.map((one) => one.name).join(", ") || "none";
  return fail("invalid_argument", `there is no MCP server ${quoted(name, 80)}; configured: ${names}`);
}

async function test(ctx: Context, name: string): Promise<Result<McpServerRow>> {
  const server = find(ctx, name);
  if (!server.ok) return server;
  const tested = await ctx.deps.outside?.test(name, ctx.signal);
  return tested?.ok === false ? fail(tested.code, tested.error) : ok(rowOf(ctx, server.value));
}

function findSignIn(ctx: Context, name: string): Result<SignIn> {
  const server = find(ctx, name);
  if (!server.ok) return server;
  const signIn = ctx.deps.outside?.signIn(name);
  if (signIn !== undefined) return ok(signIn);
  const why = "it is a program, or has a token in its headers";
  return fail("invalid_argument", `nobody can sign in at the MCP server "${name}": ${why}`);
}

async function finish(ctx: Context, query: string): Promise<Result<McpServerRow>> {
  const params = new URLSearchParams(query);
  const { serverOfState } = await import("../../tools/mcp/sign-in/sign-in.ts");
  const name = serverOfState(params);
  if (name === undefined) return fail("invalid_argument", "this is not the answer to a sign-in");
  const signIn = findSignIn(ctx, name);
  if (!signIn.ok) return signIn;
  const finished = await signIn.value.finish(params);
  return finished.ok ? test(ctx, name) : finished;
}

export const serverMethods: Methods<keyof typeof SERVER_METHODS, ServerListDeps> = {
  "servers.list": {
    async handle(ctx) {
      const servers = ctx.deps.settings.tools.mcp.servers.map((one) => rowOf(ctx, one));
      return ok({ ts: ctx.deps.world.clock.now(), servers, agents: await agentRows(ctx) });
    },
  },
  "servers.test": {
    handle: (ctx, { name }) => test(ctx, name),
  },
  "servers.login": {
    async handle(ctx, { name, redirectUrl }) {
      const signIn = findSignIn(ctx, name);
      if (!signIn.ok) return signIn;
      const protocol = URL.canParse(redirectUrl) ? new URL(redirectUrl).protocol : "";
      if (protocol !== "https:" && protocol !== "http:")
        return fail("invalid_argument", "redirectUrl is not an HTTP address");
      const begun = await signIn.value.begin(redirectUrl);
      return begun.ok ? ok({ url: begun.value }) : begun;
    },
  },
  "servers.login.finish": {
    handle: (ctx, { query }) => finish(ctx, query),
  },
  "servers.logout": {
    async handle(ctx, { name }) {
      const signIn = findSignIn(ctx, name);
      if (!signIn.ok) return signIn;
      return ok({ ok: true, forgotten: await signIn.value.forget() });
    },
  },
};
