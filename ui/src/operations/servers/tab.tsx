// The tab that shows MCP servers with their tools, and the programs of ACP agents. It tests an MCP server.

import { useState } from "preact/hooks";
import type { AcpAgentRow, McpServerRow } from "../../../../src/contract/methods/servers.ts";
import { tick } from "../../clock.ts";
import { ask, has, may, wordsOf } from "../../gateway.ts";
import { Awaited } from "../../parts/failure.tsx";
import { ago, counted, duration } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { useReading } from "../../parts/reading.ts";
import { State } from "../../parts/state.tsx";
import { hrefOf } from "../../route.ts";
import { usePolling } from "../polling.ts";
import { beginSignIn } from "./sign-in.ts";
import "../rows.css";
import "../upkeep/upkeep.css";

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
      <p class="chips">
        {tools.map((name) => (
          <code key={name} class="chip">
            <Name text={name} />
          </code>
        ))}
        {leftOut.map(({ tool, why }) => (
          <span key={tool} class="chip tone-warn">
            <Name text={`${tool}: ${why}`} />
          </span>
        ))}
      </p>
    </details>
  );
}

function Server({ server, onTested }: { server: McpServerRow; onTested: () => void }) {
  const now = tick.value;
  const [testing, setTesting] = useState(false);
  const [problem, setProblem] = useState<string>();
  const { name, place, transport, agents, connectedSince, lastError, lastErrorAt, backoffUntil = 0 } = server;
  const { needsSignIn = false } = server;
  const state = STATES[server.state];
  const error = problem ?? lastError;
  const test = (): void => {
    if (testing) return;
    setTesting(true);
    setProblem(undefined);
    ask("servers.test", { name })
      .catch((thrown: unknown) => setProblem(wordsOf(thrown)))
      .finally(() => {
        setTesting(false);
        onTested();
      });
  };
  const signIn = (): void => {
    beginSignIn(name).catch((thrown: unknown) => setProblem(wordsOf(thrown)));
  };
  return (
    <li class="out-row out-wide">
      <div class="row-state" role="status">
        <State state={server.state} {...(testing ? { text: "testing…", tone: "busy" } : state)} />
      </div>
      <div class="row-main">
        <p class="row-title">
          <strong>
            <Name text={name} />
          </strong>
          <span class="chip">{transport}</span>
          <span class="soft">
            <Name text={place} />
          </span>
        </p>
        <p class="soft">
          <Name text={agents.length === 0 ? "for every agent" : `for ${agents.join(", ")}`} />
          {connectedSince !== undefined && ` · connected ${ago(connectedSince, now)}`}
          {backoffUntil > now && ` · runs do not start it for ${duration(backoffUntil - now)}`}
        </p>
        {error !== undefined && !testing && (
          <p class="row-error tone-bad">
            <Name text={error} />
            {lastErrorAt !== undefined && <span class="soft"> · {ago(lastErrorAt, now)}</span>}
          </p>
        )}
        <Tools server={server} />
      </div>
      <div class="row-actions">
        {needsSignIn && may("operator.admin") && has("servers.login") && (
          <button type="button" class="primary" aria-label={`Sign in at ${name}`} onClick={signIn}>
            Sign in
          </button>
        )}
        {may("operator.admin") && has("servers.test") && (
          <button type="button" aria-label={`Test ${name}`} aria-disabled={testing} onClick={test}>
            Test
          </button>
        )}
      </div>
    </li>
  );
}

function Agent({ agent: { agentId, program, sessions, lastFailure } }: { agent: AcpAgentRow }) {
  const count = sessions.length;
  return (
    <li class="out-row out-wide">
      <div class="row-state">
        <State
          state={count > 0 ? "ok" : "idle"}
          text={count > 0 ? `${counted(count, "program")} running` : "not running"}
        />
      </div>
      <div class="row-main">
        <p class="row-title">
          <strong>
            <Name text={agentId} />
          </strong>
          <span class="soft">
            <Name text={program} />
          </span>
        </p>
        <p class="chips">
          {sessions.map((key) => (
            <SessionLink key={key} sessionKey={key} />
          ))}
        </p>
        {lastFailure !== undefined && (
          <p class="row-error tone-bad">
            <Name text={lastFailure.error} />{" "}
            <span class="soft">
              · {ago(lastFailure.atMs, tick.value)} in <SessionLink sessionKey={lastFailure.sessionKey} />
            </span>
          </p>
        )}
      </div>
    </li>
  );
}

export function ServersTab() {
  const list = useReading("servers", () => ask("servers.list"));
  const { value, again } = list;
  usePolling(EVERY_MS, again);
  return (
    <>
      <h2>MCP servers</h2>
      <p class="soft">
        Servers that give agents more tools. Each starts when a run needs it. A test starts it now and reads
        its tools.
      </p>
      <Awaited {...list} />
      {value?.servers.length === 0 && (
        <p class="empty">
          No MCP servers. Add one in the{" "}
          <a href={hrefOf({ view: "operations", tab: "configuration" })}>configuration</a>.
        </p>
      )}
      <ul class="out-rows card" aria-label="MCP servers">
        {value?.servers.map((server) => (
          <Server key={server.name} server={server} onTested={again} />
        ))}
      </ul>
      {value !== undefined && value.agents.length > 0 && (
        <>
          <h2 class="upkeep-title">ACP agents</h2>
          <p class="soft">Agents that are outside programs. Each session has its own program.</p>
          <ul class="out-rows card" aria-label="ACP agents">
            {value.agents.map((agent) => (
              <Agent key={agent.agentId} agent={agent} />
            ))}
          </ul>
        </>
      )}
    </>
  );
}
