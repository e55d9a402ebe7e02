// Offers the actions for the selected step: stop a run, cancel a job, retry, fork at its message, open the
// session. Offers the dialogs of features about an ended chain.

import type { ComponentType } from "preact";
import { useState } from "preact/hooks";
import { NOT_VISIBLE } from "../../../src/core/rules/visibility.ts";
import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { fork, mayFork } from "../conversation/fork.ts";
import { CHAIN_DIALOGS } from "../features.ts";
import { ask, coversAll, has, may } from "../gateway.ts";
import { Confirm } from "../parts/dialog.tsx";
import { counted } from "../parts/format.ts";
import { complain, say } from "../parts/notices.tsx";
import { hrefOf } from "../route.ts";
import { agentsIn } from "./state.ts";
import { type FlowStep, hasRun, homeOf, isActive } from "./words.ts";

interface Deed {
  readonly name: string;
  /** Notice after the action. Absent if the page shows the result. */
  readonly done?: string;
  /** Texts of the button during and after the action, if a notice would cover other buttons. */
  readonly labels?: { readonly during: string; readonly after: string };
  /** Question to confirm before the action, if it affects several jobs. */
  readonly doubt?: string;
  act(): Promise<unknown>;
}

/** Returns the action that cancels these jobs and the sub-agents below them. */
function cancelling(jobs: readonly FlowStep[]): Deed {
  const act = (): Promise<unknown> =>
    Promise.all(jobs.map(({ to: sessionKey = "" }) => ask("chat.abort", { sessionKey })));
  if (jobs.length === 1) return { name: "Cancel job", done: "Cancelled.", act };
  const some = counted(jobs.length, "job");
  const doubt = `${some} and their sub-agents are cancelled.`;
  return { name: `Cancel ${some}`, done: `Cancelled ${some}.`, doubt, act };
}

/** Returns the action that retries a run or a delivery. */
function retrying(act: () => Promise<unknown>): Deed {
  return { name: "Retry", labels: { during: "Retrying…", after: "Retried" }, act };
}

/** Returns the action that forks a session after the message of a step. */
function forking({ messageIn, messageId }: FlowStep): Deed[] {
  if (messageIn === undefined || messageId === undefined || !mayFork()) return [];
  return [{ name: "Fork from here", act: () => fork(messageIn, messageId) }];
}

/** Returns the actions that change the run or the delivery of a step. */
function deedsOf(step: FlowStep): Deed[] {
  const { id, kind, state, runId, flowId } = step;
  if (kind === "delivery") {
    if (state !== "failed" || !may("operator.admin")) return [];
    const delivery = id.replace(/^delivery:/, "");
    return [retrying(() => ask("deliveries.retry", { id: delivery }))];
  }
  if (!hasRun(step) || !may("operator.write")) return [];
  const active = (step.members ?? [step]).filter((one) => isActive(one) && one.runId !== undefined);
  if (kind === "spawn") return active.length === 0 ? [] : [cancelling(active)];
  const sessionKey = homeOf(step);
  if (step.members !== undefined || runId === undefined || sessionKey === undefined) return [];
  if (active.length > 0)
    return [{ name: "Stop", done: "Stopped.", act: () => ask("chat.abort", { sessionKey, runId }) }];
  // Do not offer Retry for the failed run of a job or a conversation: its requester was told about the
  // failure, and can ask again.
  if (!["error", "timeout"].includes(state) || flowId !== undefined) return [];
  return [retrying(() => ask("runs.retry", { runId }))];
}

function DeedButton({ deed }: { deed: Deed }) {
  const { name, done, doubt, labels, act } = deed;
  const [asks, setAsks] = useState(false);
  const [label, setLabel] = useState<string | undefined>();
  const [busy, setBusy] = useState(false);
  const take = (): void => {
    setBusy(true);
    setLabel(labels?.during);
    act()
      .then(() => {
        setLabel(labels?.after);
        if (done !== undefined) say(done);
      })
      .catch((error: unknown) => {
        setLabel(undefined);
        complain(error);
      })
      .finally(() => setBusy(false));
  };
  return (
    <>
      <button
        type="button"
        data-act=""
        disabled={busy || label !== undefined}
        onClick={() => (doubt === undefined ? take() : setAsks(true))}
      >
        {label ?? name}
      </button>
      {asks && (
        <Confirm title={`${name}?`} action={name} onConfirm={take} onClose={() => setAsks(false)}>
          <p>{doubt}</p>
        </Confirm>
      )}
    </>
  );
}

export function StepActions({ step, isGone }: { step: FlowStep; isGone: (key: string) => boolean }) {
  const key = homeOf(step);
  const opens =
    key === undefined || key === NOT_VISIBLE || step.members !== undefined || isGone(key)
      ? undefined
      : hrefOf({ view: "sessions", key });
  const deeds = [...deedsOf(step), ...(step.members === undefined ? forking(step) : [])];
  if (deeds.length === 0 && opens === undefined) return null;
  return (
    <div class="bar step-actions">
      {deeds.map((deed) => (
        <DeedButton key={`${step.id} ${deed.name}`} deed={deed} />
      ))}
      {opens !== undefined && <a href={opens}>Open session</a>}
    </div>
  );
}

export interface ChainDialogProps {
  readonly chainId: string;
  /** The agents of the chain. */
  readonly agents: readonly string[];
  readonly onClose: () => void;
}

/** A dialog of a feature about an ended chain. */
export interface ChainDialog {
  /** The name of its button. */
  readonly name: string;
  /** A method that the gateway must support. */
  readonly method: string;
  readonly Dialog: ComponentType<ChainDialogProps>;
}

/** Offers the dialogs about a chain. Its record is complete when it has ended. */
export function ChainActions({ chain }: { chain: ChainRow }) {
  const [open, setOpen] = useState<string>();
  if (chain.active || !may("operator.admin") || !coversAll()) return null;
  const offered = CHAIN_DIALOGS.filter(({ method }) => has(method));
  const Shown = offered.find(({ name }) => name === open)?.Dialog;
  return (
    <>
      {offered.map(({ name }) => (
        <button
          key={name}
          type="button"
          class="quiet flow-legend-button"
          data-act=""
          onClick={() => setOpen(name)}
        >
          {name}
        </button>
      ))}
      {Shown && (
        <Shown chainId={chain.chainId} agents={agentsIn([chain])} onClose={() => setOpen(undefined)} />
      )}
    </>
  );
}
