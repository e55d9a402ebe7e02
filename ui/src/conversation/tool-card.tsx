// Shows a tool call as one line that opens to its arguments and its result.

import { useState } from "preact/hooks";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { defaults } from "../gateway.ts";
import { duration, size } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { State } from "../parts/state.tsx";
import { filesOf, parsed, sessionOf, summaryOf, type ToolCall } from "./calls.ts";
import type { ToolResult } from "./items.ts";
import { Code } from "./text.tsx";

function textOf(result: ToolResult): string {
  return result.content
    .map((block) => (block.type === "text" ? block.text : `[${block.mimeType}, ${size(block.bytes ?? 0)}]`))
    .join("\n");
}

/** Formats JSON for reading, with real line breaks in its texts. */
function laidOut(value: unknown): string {
  return JSON.stringify(value, undefined, 2).replaceAll(/\\(.)/g, (pair, char) =>
    char === "n" ? "\n" : pair,
  );
}

function pretty(text: string): string {
  const value = parsed(text);
  return value === undefined ? text : laidOut(value);
}

/** Returns the session key of a name. An agent calls its own main session `main`. */
function keyFor(name: string, agentId: string): string {
  return name === "main" ? `agent:${agentId}:${defaults.value?.mainKey ?? "main"}` : name;
}

interface ToolCardProps {
  /** Undefined: the call is in an earlier part of the transcript. */
  readonly call: ToolCall | undefined;
  readonly result: ToolResult | undefined;
  readonly calledAt: number;
  /** Its run has not ended. */
  readonly running: boolean;
  readonly agentId: string;
}

/** The status of a call; its duration if it succeeded. */
function Outcome({ result, calledAt, running }: ToolCardProps) {
  if (result === undefined)
    return running ? <State state="running" /> : <State state="aborted" text="no result" />;
  if (result.isError) return <State state="failed" />;
  return <span class="soft number">{duration(Math.max(0, result.timestamp - calledAt))}</span>;
}

function Inside({ call, result }: ToolCardProps) {
  return (
    <div class="tool-inside">
      {call !== undefined && Object.keys(call.arguments).length > 0 && (
        <Code name="Arguments" text={laidOut(call.arguments)} />
      )}
      {result !== undefined && (
        <div class={result.isError ? "tool-error" : undefined}>
          <Code name={result.isError ? "Error" : "Result"} text={pretty(textOf(result))} />
        </div>
      )}
    </div>
  );
}

export function ToolCard(props: ToolCardProps) {
  const { call, result, agentId } = props;
  const [open, setOpen] = useState(false);
  const text = result === undefined ? undefined : textOf(result);
  const session = call && sessionOf(call, text);
  const files = call === undefined ? [] : filesOf(call, text);
  return (
    <div class={`tool ${result?.isError === true ? "tool-failed" : ""}`}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="tool-name mono">
            <Name text={call?.name ?? result?.toolName ?? "tool"} />
          </span>
          <bdi class="tool-summary soft">{call === undefined ? "" : safeLine(summaryOf(call))}</bdi>
          <Outcome {...props} />
        </summary>
        {open && <Inside {...props} />}
      </details>
      {(session !== undefined || files.length > 0) && (
        <div class="tool-about">
          {session !== undefined && (
            <span>
              → <SessionLink sessionKey={keyFor(session, agentId)} />
            </span>
          )}
          {files.map(({ name, bytes }) => (
            <span key={name} class="chip">
              <Name text={name} />
              {bytes !== undefined && ` ${size(bytes)}`}
            </span>
          ))}
        </div>
      )}
    </div>
  );
}
