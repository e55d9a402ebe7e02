// The tab that shows MCP servers with their tools, and the programs of ACP agents. It tests an MCP server.

import type { AcpAgentRow, McpServerRow } from "../../../../src/contract/methods/servers.ts";
import { tick } from "../../clock.ts";
import { ask, has, may } from "../../gateway.ts";
import { ago, counted, duration } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { State } from "../../parts/state.tsx";
import { joinWords } from "../../parts/words.ts";
import { hrefOf } from "../../route.ts";
import { usePolled } from "../polling.ts";
import { ResourceList, type ResourceRow, type RowAction } from "../resource-list.tsx";
import { beginSignIn } from "./sign-in.ts";

/** Polling interval. Polling is needed, because no event reports that a program has started or stopped. */
const EVERY_MS = 5_000;

const STATES = {
  idle: { text: "not in use", tone: "quiet" },
  starting: { text: "starting", tone: "busy" },
  ready: { text: "connected", tone: "good" },
  down: { text: "failed", tone: "bad" },
} as const;

function Tools({ server: { tools, leftOut } }: { server: McpServerRow }) {
  if (tools.length + leftOut.length === 0) return null;
  const others = leftOut.length === 0 ? "" : `, ${leftOut.length} left out`;
  return (
    <details>
      <summary>
        {counted(tools.length, "tool")}
        {others}
      </summary>
      <p class="line chips">
        {tools.map((name) => (
          <Name as="code" key={name} class="chip" text={name} />
        ))}
        {leftOut.map(({ tool, why }) => (
          <Name as="span" key={tool} class="chip tone-warn" text={`${tool}: ${why}`} />
        ))}
      </p>
    </details>
  );
}

function Agents({ agents }: { agents: readonly AcpAgentRow[] }) {
  return (
    <ResourceList
      title="ACP agents"
      words="Agents that are outside programs. Each session has its own program."
      rows={agents}
      row={({ agentId, program, sessions, lastFailure }) => ({
        key: agentId,
        state:
          sessions.length > 0 ? (
            <State state="ok" text={`${counted(sessions.length, "program")} running`} />
          ) : (
            <State state="idle" text="not running" />
          ),
        name: agentId,
        beside: <Name as="span" class="soft" text={program} />,
        body: (
          <>
            <p class="line chips">
              {sessions.map((key) => (
                <SessionLink key={key} sessionKey={key} />
              ))}
            </p>
            {lastFailure !== undefined && (
              <p class="small row-error tone-bad">
                <Name text={lastFailure.error} />{" "}
                <span class="soft">
                  · {ago(lastFailure.atMs, tick.value)} in <SessionLink sessionKey={lastFailure.sessionKey} />
                </span>
              </p>
            )}
          </>
        ),
      })}
    />
  );
}

function serverRow(server: McpServerRow): ResourceRow {
  const { name, place, transport, agents, connectedSince, lastError, backoffUntil = 0 } = server;
  const now = tick.value;
  const offers = (method: Parameters<typeof has>[0]): boolean => may("operator.admin") && has(method);
  const signIn: RowAction = {
    label: "Sign in",
    about: `at ${name}`,
    class: "primary",
    run: () => beginSignIn(name),
  };
  const test: RowAction = { label: "Test", about: name, run: () => ask("servers.test", { name }) };
  return {
    key: name,
    state: (
      <span role="status">
        <State state={server.state} {...STATES[server.state]} />
      </span>
    ),
    name,
    beside: (
      <>
        <span class="chip">{transport}</span>
        <Name as="span" class="soft" text={place} />
      </>
    ),
    facts: [
      joinWords([
        agents.length === 0 ? "for every agent" : `for ${agents.join(", ")}`,
        connectedSince === undefined ? "" : `connected ${ago(connectedSince, now)}`,
        backoffUntil > now ? `runs do not start it for ${duration(backoffUntil - now)}` : "",
      ]),
    ],
    error: lastError === undefined ? undefined : { text: lastError, at: server.lastErrorAt },
    body: <Tools server={server} />,
    actions: [
      ...(server.needsSignIn && offers("servers.login") ? [signIn] : []),
      ...(offers("servers.test") ? [test] : []),
    ],
  };
}

export function ServersTab() {
  const list = usePolled("servers", EVERY_MS, () => ask("servers.list"));
  const { value } = list;
  return (
    <>
      <ResourceList
        title="MCP servers"
        words={
          <>
            Servers that give agents more tools. Each starts when a run needs it. A test starts it now and
            reads its tools.
          </>
        }
        list={list}
        rows={value?.servers}
        empty={
          <>
            No MCP servers. Add one in the{" "}
            <a href={hrefOf({ view: "operations", tab: "configuration" })}>configuration</a>.
          </>
        }
        row={serverRow}
      />
      {value !== undefined && value.agents.length > 0 && <Agents agents={value.agents} />}
    </>
  );
}
