// Offers the actions for the selected step: stop a run, cancel a job, retry, fork at its message, open the
// session. Offers the pages of features about an ended chain.

import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import { NOT_VISIBLE } from "../../../src/core/rules/visibility.ts";
import type { ChainRow, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { fork, mayFork } from "../conversation/fork.ts";
import { CHAIN_PAGES } from "../features.ts";
import { ask, coversAll, has, may } from "../gateway.ts";
import { ActionButton, type RowAction, useOpened } from "../operations/resource-list.tsx";
import { counted } from "../parts/format.ts";
import { hrefOf } from "../route.ts";
import { type Around, type FlowStep, hasRun, homeOf, isActive } from "./words.ts";

/** A notice would cover other buttons. */
const RETRY = { label: "Retry", after: "Retried" };

function cancelling(jobs: readonly FlowStep[]): RowAction {
  const run = (): Promise<unknown> =>
    Promise.all(jobs.map(({ to: sessionKey = "" }) => ask("chat.abort", { sessionKey })));
  if (jobs.length === 1) return { label: "Cancel job", done: "Cancelled.", run };
  const some = counted(jobs.length, "job");
  const text = <p>{`${some} and their sub-agents are cancelled.`}</p>;
  const question = { title: `Cancel ${some}?`, text };
  return { label: `Cancel ${some}`, done: `Cancelled ${some}.`, question, run };
}

function forking({ messageIn, messageId }: FlowStep): RowAction[] {
  if (messageIn === undefined || messageId === undefined || !mayFork()) return [];
  return [{ label: "Fork from here", run: () => fork(messageIn, messageId) }];
}

function listActions(step: FlowStep): RowAction[] {
  const { id, kind, state, runId, flowId } = step;
  if (kind === "delivery") {
    if (state !== "failed" || !may("operator.admin")) return [];
    const delivery = id.replace(/^delivery:/, "");
    return [{ ...RETRY, run: () => ask("deliveries.retry", { id: delivery }) }];
  }
  if (!hasRun(step) || !may("operator.write")) return [];
  const active = (step.members ?? [step]).filter((one) => isActive(one) && one.runId !== undefined);
  if (kind === "spawn") return active.length === 0 ? [] : [cancelling(active)];
  const sessionKey = homeOf(step);
  if (step.members !== undefined || runId === undefined || sessionKey === undefined) return [];
  if (active.length > 0)
    return [{ label: "Stop", done: "Stopped.", run: () => ask("chat.abort", { sessionKey, runId }) }];
  // Do not offer Retry for the failed run of a job or a conversation: its requester was told about the
  // failure, and can ask again.
  if (!["error", "timeout"].includes(state) || flowId !== undefined) return [];
  return [{ ...RETRY, run: () => ask("runs.retry", { runId }) }];
}

/** Returns whether a replay can begin with the message of a step. */
export function isReplayable({ kind, members, messageId }: FlowStep): boolean {
  return members === undefined && messageId !== undefined && !["wait", "refused", "delivery"].includes(kind);
}

export function StepActions({ step, value }: { step: FlowStep; value: PayloadOf<"chains.get"> }) {
  const { chain, parties } = value;
  const { chainId } = chain;
  const { opened, onOpen } = useOpened();
  const isSingle = step.members === undefined;
  const key = homeOf(step);
  const isGone = parties.some((one) => one.key === key && one.gone === true);
  const opens = isSingle && key !== undefined && key !== NOT_VISIBLE && !isGone ? key : undefined;
  const actions = [...listActions(step), ...(isSingle ? forking(step) : [])];
  const pages = isReplayable(step) ? pagesAbout(chain).filter(({ stepName }) => stepName) : [];
  if (actions.length === 0 && pages.length === 0 && opens === undefined) return null;
  return (
    <div class="bar">
      {actions.map((action) => (
        <ActionButton key={`${step.id} ${action.label}`} action={action} onOpen={onOpen} data-act="" />
      ))}
      {opened}
      {pages.map(({ stepName, at }) => (
        <a key={at} href={hrefOf({ view: "flow", chainId, page: at, about: step.messageId })}>
          {stepName}
        </a>
      ))}
      {opens !== undefined && <a href={hrefOf({ view: "sessions", key: opens })}>Open session</a>}
    </div>
  );
}

export interface ChainPageProps {
  readonly chain: ChainRow;
  readonly steps: readonly ChainStep[];
  readonly around: Around;
  /** The end of the page's address. */
  readonly about: string | undefined;
}

/** A page of a feature about an ended chain. It is shown in place of the chain's steps. */
export interface ChainPage {
  readonly name: string;
  /** The page's part of the address. */
  readonly at: string;
  /** A method that the gateway must support. */
  readonly method: string;
  /** Name of the link at a step, if the page can be about a step: the address then ends with its message. */
  readonly stepName?: string;
  readonly Page: ComponentType<ChainPageProps>;
}

/** Returns the pages about a chain. Its record is complete when it has ended. */
export function pagesAbout(chain: ChainRow): readonly ChainPage[] {
  if (chain.active || !may("operator.admin") || !coversAll()) return [];
  return CHAIN_PAGES.filter(({ method }) => has(method));
}

/** Shows a page about a chain. It takes the focus, because the link that led here is gone. */
export function ChainPageView({ page, ...props }: ChainPageProps & { readonly page: ChainPage }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { chainId } = props.chain;
  useEffect(() => heading.current?.focus(), [page]);
  return (
    <section class="chain-page" aria-labelledby="chain-page-title">
      <a href={hrefOf({ view: "flow", chainId })}>‹ Steps</a>
      <h2 id="chain-page-title" ref={heading} tabIndex={-1}>
        {page.name}
      </h2>
      <page.Page {...props} />
    </section>
  );
}
