// Owns the MCP servers of a gateway, and decides which of their tools a session may use.
// - The tool policy applies to MCP tools like to any other tool. A server whose tools are
//   all denied is not started for the session, and not waited for.
// - `apply` compares the servers with the settings. A server that was removed or changed is closed after the
//   calls under way. Further calls of a run go to the new server of that name, if it still has the tool.
// - A run waits at most `tools.mcp.waitSeconds` for all its servers together.
// - MCP tools run one at a time. So after a restart the order of the stored calls shows which of them may
//   have begun, even if the server now describes its tools differently (K2 and K3 of tool-calls.ts).

import { isDeepStrictEqual } from "node:util";
import { optional } from "../../core/optional.ts";
import { joinLabels } from "../../core/rules/labels/labels.ts";
import { decideTool, filtersFor, mayHaveToolsUnder, outsidePrefix } from "../../core/rules/tool-policy.ts";
import { type Failure, fail, type Result } from "../../core/shapes/errors.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { matchesAny } from "../../core/text/pattern.ts";
import { readLabel } from "../labels/sinks.ts";
import type { MissingTools, OutsideSet, OutsideTools } from "../tool.ts";
import { askerFor } from "./asking.ts";
import type { CallEnd } from "./connection.ts";
import type { Definition, Definitions } from "./definitions.ts";
import { plainLine, secretsMaskOf } from "./plain-text.ts";
import { type OutsideResult, resultOf } from "./result.ts";
import { Server } from "./server.ts";
import type { OutsideWorld } from "./transport.ts";

/** Maximum number of MCP tools of a run: model APIs accept 128 tools, including Parley's own. */
const TOOLS_OF_A_RUN_MAX = 100;
const NAME_MAX_CHARS = 128;
const NO_TOOLS: Definitions = { tools: [], leftOut: [] };

/**
 * Variables of the gateway's environment that every MCP server's program gets: paths and locale, no secrets.
 */
const HANDED_ON = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LC_ALL",
  "TZ",
  "TMPDIR",
  "TEMP",
  "TERM",
  "SYSTEMROOT",
  "APPDATA",
];

export interface OutsideParts {
  readonly settings: Settings;
  readonly world: OutsideWorld;
  readonly version: string;
  /** The environment of the gateway's process. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface ServerReport {
  readonly server: string;
  readonly usable: boolean;
  readonly text: string;
}

export interface OutsideServers extends OutsideTools {
  /** Starts every server and reports the outcome. Waits for each until its start succeeds or times out. */
  inspect(): Promise<ServerReport[]>;
  /** Replaces the servers that differ from the settings. Starts none. */
  apply(): void;
  /** Stops all servers. */
  close(): Promise<void>;
}

function resultOfEnd(
  { settings: one, signIn }: Server,
  end: CallEnd,
  bytesMax: number,
): Result<OutsideResult> {
  const named = `the MCP server "${one.name}"`;
  switch (end.kind) {
    case "answer":
      return resultOf(end.answer, bytesMax, secretsMaskOf(one, signIn));
    case "refused": {
      const hint = end.mayHaveRun ? "It may have taken effect: check before you repeat it." : undefined;
      return fail("mcp_failed", `${named} answered with an error: ${end.error}`, optional({ hint }));
    }
    case "unsent":
      return fail("mcp_unavailable", `not run: ${named} is not available: ${end.error}`, {
        hint: "Try again later, or do without it.",
      });
    case "lost":
      return fail("outcome_unknown", `outcome unknown: ${named} was lost during this call: ${end.error}`, {
        hint: "It may have taken effect: check before you repeat it.",
      });
    case "timeout":
      return fail(
        "mcp_timeout",
        `${named} did not answer within ${one.timeoutSeconds} s; the call was cancelled`,
        { hint: "It may have taken effect nevertheless: check before you repeat it." },
      );
    case "aborted":
      return fail("run_aborted", "the run was aborted, and the call was cancelled");
  }
}

type Current = (name: string) => Server | undefined;

function toolOf(
  server: Server,
  definition: Definition,
  parts: OutsideParts,
  currentOf: Current,
): OutsideSet["tools"][number] {
  const { mcp } = parts.settings.tools;
  const { name, description, parameters, repeatable } = definition;
  return {
    spec: { name, description, parameters, parallel: false, idempotent: repeatable },
    accepts: {},
    sink: (_ctx, args) => ({ kind: "mcp", to: name, payload: JSON.stringify(args) }),
    reads(ctx) {
      const source = `mcp ${server.name}`;
      const isPrivate = matchesAny(ctx.settings.labels.private, source);
      const outside = readLabel(ctx, "outside", source);
      return isPrivate ? joinLabels(outside, readLabel(ctx, "private", source)) : outside;
    },
    async execute(ctx, args) {
      const { signal, wait } = ctx;
      const untilMs = parts.world.clock.monotonic() + mcp.waitSeconds * 1_000;
      const current = currentOf(server.name);
      const mayAct = async (): Promise<boolean> => wait === undefined || wait.mayAct(signal);
      const { mask } = current ?? server;
      const { askSeconds } = parts.settings.tools.exec;
      const asker = askerFor(ctx, { server: server.name, mask, askSeconds, world: parts.world });
      const patience = { untilMs, signal, mayAct, asker };
      // The server may have been replaced or removed after the run got its tools.
      const end = await (current ?? server).use(async () => {
        if (current === server) return server.call(definition, args, patience);
        const refuseCall = (error: string): CallEnd => ({ kind: "unsent", error, link: "same" });
        const list = await current?.tools(patience);
        if (current === undefined || list === undefined)
          return refuseCall("it was removed from the configuration");
        if (!list.ok) return refuseCall(list.error);
        const tool = list.value.tools.find(({ name }) => name === definition.name);
        if (tool === undefined)
          return refuseCall("its configuration was changed, and it no longer has this tool");
        return current.call(tool, args, patience);
      });
      return resultOfEnd(current ?? server, end, mcp.maxResultBytes);
    },
  };
}

/** Keeps one server for each entry of the settings. */
function keepServers(parts: OutsideParts) {
  const { settings, world, version } = parts;
  const environment = Object.fromEntries(
    HANDED_ON.flatMap((name) => {
      const value = parts.environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  let servers: readonly Server[] = [];
  const retiring = new Set<Server>();
  const apply = (): void => {
    const before = servers;
    servers = settings.tools.mcp.servers.map((wanted) => {
      const found = before.find((one) => isDeepStrictEqual(one.settings, wanted));
      const { dir } = settings.store;
      return found ?? new Server({ settings: wanted, world, version, environment, dir });
    });
    for (const server of before) {
      if (servers.includes(server)) continue;
      retiring.add(server);
      void server.retire().finally(() => retiring.delete(server));
    }
  };
  const currentOf: Current = (name) => servers.find((one) => one.name === name);
  const close = async (): Promise<void> => {
    await Promise.all([...servers, ...retiring].map((server) => server.close()));
  };
  apply();
  return { all: () => servers, currentOf, apply, close };
}

/** Creates the MCP servers of the configuration, without starting any. */
export function openOutsideServers(parts: OutsideParts): OutsideServers {
  const { settings, world } = parts;
  const { all, currentOf, apply, close } = keepServers(parts);

  async function forSession(...[chain, signal, only]: Parameters<OutsideTools["forSession"]>) {
    const { mcp } = settings.tools;
    const filters = filtersFor(chain, settings);
    const wanted = all().filter(({ name }) => {
      const prefix = outsidePrefix(name);
      return mayHaveToolsUnder(prefix, filters) && (only === undefined || only.startsWith(prefix));
    });
    const untilMs = world.clock.monotonic() + mcp.waitSeconds * 1_000;
    const missing: MissingTools[] = [];
    const found = await Promise.all(
      wanted.map(async (server) => {
        const list = await server.use(() => server.tools({ untilMs, signal }));
        if (list.ok)
          return list.value.tools.map((definition) => toolOf(server, definition, parts, currentOf));
        missing.push({ server: server.name, why: list.error });
        return [];
      }),
    );
    const allowed = found.flat().filter(({ spec }) => decideTool(spec.name, filters).allowed);
    const set: OutsideSet = { tools: allowed.slice(0, TOOLS_OF_A_RUN_MAX), missing };
    for (const server of wanted) {
      const over = allowed.slice(TOOLS_OF_A_RUN_MAX).filter(({ spec }) => isOf(server, spec.name)).length;
      const why = `${over} of its tools are over the limit of ${TOOLS_OF_A_RUN_MAX} outside tools of one run`;
      if (over > 0) missing.push({ server: server.name, why });
    }
    return set;
  }

  return {
    forSession,
    apply,
    close,
    knownNames: () => all().flatMap(({ known }) => known.tools.map(({ name }) => name)),
    statuses: () => all().map((server) => server.status()),
    toolsOf(name) {
      const { tools, leftOut } = currentOf(name)?.known ?? NO_TOOLS;
      return { tools: tools.map(({ ownName }) => plainLine(ownName, NAME_MAX_CHARS)), leftOut };
    },
    async test(name, signal) {
      const server = currentOf(name);
      if (server === undefined) return fail("mcp_unavailable", "it is not configured");
      server.endPause();
      const untilMs = patienceOf(server, world);
      const list = await server.use(() => server.tools({ untilMs, signal }));
      return list.ok ? list : { ...list, error: wordsOf(list) };
    },
    signIn: (name) => currentOf(name)?.signIn,
    inspect: () => Promise.all(all().map((server) => inspectOne(server, parts))),
  };
}

const isOf = (server: Server, tool: string): boolean => tool.startsWith(outsidePrefix(server.name));

/** Returns the time until which a caller waits for the end of a start, on the monotonic clock. */
const patienceOf = ({ settings }: Server, { clock }: OutsideWorld): number =>
  clock.monotonic() + (settings.startTimeoutSeconds + 1) * 1_000;

/** Returns the error, followed by the last output of the server's program. */
function wordsOf({ error, details }: Failure): string {
  return typeof details?.said === "string" ? `${error}; it said: ${details.said}` : error;
}

async function inspectOne(server: Server, { world }: OutsideParts): Promise<ServerReport> {
  const list = await server.tools({
    untilMs: patienceOf(server, world),
    signal: new AbortController().signal,
  });
  if (!list.ok) {
    return { server: server.name, usable: false, text: wordsOf(list) };
  }
  const { tools, leftOut } = list.value;
  const without = leftOut.map(({ tool, why }) => `${tool} (${why})`).join(", ");
  const text = `${tools.length} tools${leftOut.length === 0 ? "" : `; left out: ${without}`}`;
  return { server: server.name, usable: tools.length > 0, text };
}
