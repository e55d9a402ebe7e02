// Shows a step of an agent's work as one expandable line: a thought, or a tool call with its arguments and
// result.

import { useContext, useEffect, useState } from "preact/hooks";
import { fieldsOf } from "../../../../src/core/json.ts";
import { head } from "../../../../src/core/text/cut.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { after, now } from "../../clock.ts";
import { defaults, has, may } from "../../gateway.ts";
import { permissionsOf } from "../../inbox/model.ts";
import { StepChips } from "../../labels/chips.tsx";
import { beginSignIn } from "../../operations/servers/sign-in.ts";
import { Button } from "../../parts/button.tsx";
import { duration, size } from "../../parts/format.ts";
import { Fold, lazy } from "../../parts/lazy.tsx";
import { Name, SessionLink } from "../../parts/name.tsx";
import { complain } from "../../parts/notices.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import type { Live } from "../live.ts";
import { OpenSession } from "../open-session.ts";
import { GrowingProse, Prose } from "../text/text.tsx";
import type { Run } from "../thread.ts";
import { type CallStep, filesOf, parsed, resultText, sessionOf, signInOf, summaryOf } from "./calls.ts";

/** State of the run of a step. False: it has ended. */
export type Going = Run["state"] | false;

/** Returns the session key for a name in a call. `main` is the main session of the calling agent. */
export function keyFor(name: string, agentId: string): string {
  return name === "main" ? `agent:${agentId}:${defaults.value?.mainKey ?? "main"}` : name;
}

function Outcome({ step, running }: { step: CallStep; running: Going }) {
  const { call, result, calledAt } = step;
  const { sessionKey } = useContext(OpenSession);
  if (result === undefined) {
    // The title of a request to call a tool of Parley is the tool's name.
    const needsPermission = permissionsOf(sessionKey).some(({ title }) => title === call?.name);
    if (needsPermission) return <State state="waiting" text="needs permission" tone="warn" />;
    return running === false ? <State state="aborted" text="no result" /> : <State state={running} />;
  }
  const isCommand = call?.arguments.command !== undefined;
  const { code, exitCode } = result.isError || isCommand ? fieldsOf(parsed(resultText(result))) : {};
  // A kill ended the process during the call.
  if (result.isError && code === "outcome_unknown") return <State state="aborted" text="outcome unknown" />;
  if (result.isError && code === "approval_denied") return <State state="aborted" text="not approved" />;
  if (result.isError) return <State state="failed" />;
  if (typeof exitCode === "number" && exitCode !== 0)
    return <State state="aborted" text={`exit code ${exitCode}`} />;
  return <span class="soft number">{duration(Math.max(0, result.timestamp - calledAt))}</span>;
}

/** Shows the session, the files and the labels of a call, and a button if its server wants a sign-in. */
function About({ call, result, labels }: CallStep) {
  const { agentId } = useContext(OpenSession);
  const text = result && resultText(result);
  const session = call && sessionOf(call, text);
  const files = call === undefined ? [] : filesOf(call, text);
  const mayLogIn = may("operator.admin") && has("servers.login");
  const server = result !== undefined && mayLogIn ? signInOf(result) : undefined;
  if (session === undefined && files.length === 0 && labels === undefined && server === undefined)
    return null;
  return (
    <div class="line step-about">
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
      <StepChips labels={labels} />
      {server !== undefined && (
        <Button
          text={`Sign in at ${safeLine(server)}`}
          data-act=""
          onClick={() => void beginSignIn(server).catch(complain)}
        />
      )}
    </div>
  );
}

const CallView = lazy(async () => (await import("./views.tsx")).CallView);

/** Shows an expandable line. */
function Row({ inside, ...props }: Omit<Parameters<typeof Fold>[0], "lineClass">) {
  return <Fold {...props} lineClass="row" inside={() => <div class="stack step-inside">{inside()}</div>} />;
}

export function CallRow({ step, running }: { step: CallStep; running: Going }) {
  const { call, result, calledAt } = step;
  const line = (
    <>
      <Name as="strong" class="mono" text={call?.name ?? result?.toolName ?? "tool"} />
      <bdi class="fill cut soft">{call === undefined ? "" : safeLine(summaryOf(call))}</bdi>
      <Outcome step={step} running={running} />
      <Time class="soft number" at={calledAt} />
    </>
  );
  return (
    <div class="tool">
      <Row line={line} inside={() => <CallView {...step} />} />
      <About {...step} />
    </div>
  );
}

/** `done`: the answer has begun. */
export function LiveThought({ live, done }: { live: Live; done: boolean }) {
  const [, redraw] = useState(0);
  useEffect(() => (done ? undefined : after(1_000, () => redraw(now()))));
  const seconds = Math.round((done ? live.ms : now() - live.since) / 1_000);
  const time = seconds < 60 ? `${seconds} s` : duration(seconds * 1_000);
  const line = <span class="soft number">{`Thinking ${time}${done ? "" : " …"}`}</span>;
  return (
    <div class="steps small card">
      <Row class="thinking" line={line} inside={() => <GrowingProse text={live.text} />} />
    </div>
  );
}

const THOUGHT_LINE_CHARS = 160;

export function ThoughtRow({ text }: { text: string }) {
  const start = head(text.trim(), THOUGHT_LINE_CHARS).replaceAll(/\s+/g, " ");
  const line = (
    <>
      <span class="soft">Thinking</span>
      <bdi class="fill cut soft">{safeLine(start)}</bdi>
    </>
  );
  return <Row class="thinking" line={line} inside={() => <Prose text={text} />} />;
}
