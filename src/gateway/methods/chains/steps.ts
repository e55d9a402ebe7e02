// Builds the steps of a chain, oldest first, from its runs, flows, waits, refusals and deliveries. Pure:
// computes the shown steps from rows that were read from the store. All sessions that the viewer may not see
// are shown under one name. Their steps have no text, ids or figures, and a step between two such sessions is
// left out (I9). Text of a deleted session or transcript is not shown, even if other rows still contain it.
// Credentials are redacted before text is cut (I14).

import { optional } from "../../../core/optional.ts";
import { isInInbox } from "../../../core/rules/receipt.ts";
import { isSilent } from "../../../core/rules/turn-rules.ts";
import { NOT_VISIBLE } from "../../../core/rules/visibility.ts";
import {
  type ChainParty,
  type ChainStep,
  type StepState,
  visibleOutcome,
} from "../../../core/shapes/chain-step.ts";
import { endCodeOf, isEnded, type Run } from "../../../core/shapes/run.ts";
import type { Redactor } from "../../../core/text/redact/redact.ts";
import type { RunMessages, WholeChain } from "../../../store/queries/chains/chain-details.ts";
import type { FlowOutline } from "../../../store/queries/chains/flows.ts";
import type { Refusal } from "../../../store/queries/chains/refusals.ts";
import type { Delivery } from "../../../store/queries/channels/deliveries.ts";
import type { Wait } from "../../../store/queries/runs/waits.ts";

const TEXT_CHARS_MAX = 400;
/** Maximum length of the texts of a long chain, whose answer would otherwise exceed `maxBufferedBytes`. */
const SHORT_CHARS_MAX = 120;
const LONG_CHAIN_RUNS = 1_000;
const OPENING_CHARS_MAX = 160;

interface StepViewer {
  readonly redactor: Redactor;
  sees(sessionKey: string): boolean;
  /** Whether the viewer sees every session. Then text that may name any session is shown, too. */
  readonly seesAll: boolean;
}

type Draft = Omit<ChainStep, "id" | "from" | "to" | "text"> & {
  readonly id: string;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly text?: string | undefined;
};

/** Returns the redacted beginning of a text. */
function excerpt(redactor: Redactor, text: string, charsMax: number): string {
  return redactor.cut(text.trim(), charsMax);
}

/** Returns a short excerpt for lists, such as the first message of a chain. */
export function shortExcerpt(redactor: Redactor, text: string): string {
  return excerpt(redactor, text, OPENING_CHARS_MAX);
}

/** Returns the kind and the parties of a run's step. */
function natureOf(run: Run, flow: FlowOutline | undefined): Pick<Draft, "kind" | "from" | "to" | "source"> {
  const { sessionKey, input } = run;
  const { provenance } = input;
  const step = run.flow?.step;
  if (step === "announce") return { kind: "announce", from: sessionKey };
  if (flow?.kind === "send" && step === "round1")
    return { kind: "send", from: flow.requesterKey, to: sessionKey };
  if (flow?.kind === "send") {
    const from = flow.requesterKey === sessionKey ? flow.targetKey : flow.requesterKey;
    return { kind: "reply", from, to: sessionKey };
  }
  const isTask = step === "task" && run.callId !== undefined;
  if (flow?.kind === "spawn" && isTask) return { kind: "spawn", from: flow.requesterKey, to: sessionKey };
  if (provenance?.kind === "inter_session") {
    const from = provenance.sourceSessionKey;
    if (provenance.sourceTool === "sessions_spawn")
      return { kind: "result", from, to: sessionKey, source: "job" };
    return { kind: "send", from, to: sessionKey };
  }
  if (provenance?.kind === "notice")
    return { kind: "result", from: provenance.sourceSessionKey, to: sessionKey, source: "notice" };
  return { kind: "message", to: sessionKey, source: provenance?.kind ?? "person" };
}

/** Builds the steps of one chain for one viewer. */
class Steps {
  readonly #chain: WholeChain;
  readonly #viewer: StepViewer;
  readonly #runOfCall: ReadonlyMap<string, Run>;
  readonly #runs: ReadonlyMap<string, Run>;
  readonly #now: number;
  #hidden = 0;

  constructor(chain: WholeChain, viewer: StepViewer, now: number) {
    this.#chain = chain;
    this.#viewer = viewer;
    this.#now = now;
    this.#runs = new Map(chain.runs.map((run) => [run.runId, run]));
    this.#runOfCall = new Map(
      chain.runs.flatMap((run) => (run.callId === undefined ? [] : [[run.callId, run]])),
    );
  }

  all(): ChainStep[] {
    const { runs, refusals, deliveries } = this.#chain;
    const drafts = [
      ...runs.flatMap((run) => [this.#run(run), ...this.#wait(run)]),
      // Leaves out refused calls that were repeated after a crash and then accepted.
      ...refusals.filter(({ callId }) => !this.#runOfCall.has(callId)).map((one) => this.#draftRefusal(one)),
      ...deliveries.map((one) => this.#delivery(one)),
    ];
    const inTime = drafts.map((draft, place) => ({ draft, place }));
    inTime.sort((a, b) => a.draft.at - b.draft.at || a.place - b.place);
    return inTime.flatMap(({ draft }) => this.#hideSessions(draft));
  }

  /** Hides sessions that the viewer may not see. */
  #hideSessions({ from, to, text, ...draft }: Draft): ChainStep[] {
    const parties = [from, to].filter((key) => key !== undefined);
    const hidden = parties.filter((key) => !this.#viewer.sees(key));
    if (hidden.length > 0 && hidden.length === parties.length) return [];
    const name = (key: string): string => (this.#viewer.sees(key) ? key : NOT_VISIBLE);
    const ends = {
      ...(from === undefined ? {} : { from: name(from) }),
      ...(to === undefined ? {} : { to: name(to) }),
    };
    if (hidden.length === 0) return [{ ...draft, ...ends, text: this.#excerpt(text ?? "") }];
    const { kind, at, startedAt, endAt, state, code, turn, turnsMax } = draft;
    const left = optional({ startedAt, endAt, code, turn, turnsMax });
    this.#hidden += 1;
    return [{ id: `hidden-${this.#hidden}`, kind, ...ends, at, state, ...left, text: "" }];
  }

  #excerpt(text: string): string {
    const isLong = this.#chain.runs.length > LONG_CHAIN_RUNS;
    return excerpt(this.#viewer.redactor, text, isLong ? SHORT_CHARS_MAX : TEXT_CHARS_MAX);
  }

  /** Returns the text, unless its session was deleted. */
  #quoteText(sessionKey: string, text: string | undefined): string | undefined {
    return this.#chain.sessions.has(sessionKey) ? text : undefined;
  }

  #opens(sessionKey: string, ref: RunMessages["input"]): Pick<ChainStep, "messageId" | "messageIn"> {
    const session = this.#chain.sessions.get(sessionKey);
    // Return no link to the message: the conversation view does not show a transcript from before a reset.
    if (ref === undefined || session?.sessionId !== ref.sessionId) return {};
    return { messageId: ref.id, messageIn: sessionKey };
  }

  #run(run: Run): Draft {
    const flow = run.flow === undefined ? undefined : this.#chain.flows.get(run.flow.flowId);
    const nature = natureOf(run, flow);
    const { runId, sessionKey, acceptedAt: at, startedAt, endedAt: endAt, state, code, hop, usage } = run;
    const messages = this.#chain.messages.get(runId);
    const announces = nature.kind === "announce";
    const said = run.reply ?? "";
    const silent = state === "ok" && run.kind === "turn" && isSilent(said);
    const reply = silent || said === "" ? undefined : this.#quoteText(sessionKey, this.#excerpt(said));
    const error = run.error === undefined ? undefined : this.#excerpt(run.error);
    return {
      id: `run:${runId}`,
      ...nature,
      at,
      state,
      runId,
      hop,
      ...optional({ startedAt, endAt, code, error, flowId: flow?.flowId, turn: run.flow?.turn }),
      ...optional({ receipt: this.#chain.receipts.get(runId) }),
      ...(flow?.kind === "send" ? { turnsMax: flow.turnsMax } : {}),
      text: announces ? reply : this.#quoteText(sessionKey, run.input.text),
      ...(announces || reply === undefined ? {} : { answer: reply }),
      ...(silent ? { silent } : {}),
      ...(run.kind === "append" ? { appended: true } : {}),
      ...this.#opens(sessionKey, announces ? (messages?.answer ?? messages?.input) : messages?.input),
      ...(usage.totalTokens > 0 ? { tokens: usage.totalTokens } : {}),
      ...(usage.cost.total > 0 ? { cost: usage.cost.total } : {}),
    };
  }

  /** Returns a step for the wait on a run, if there was one. */
  #wait(run: Run): Draft[] {
    const wait = run.callId === undefined ? undefined : this.#chain.waits.get(run.callId);
    const flow = run.flow === undefined ? undefined : this.#chain.flows.get(run.flow.flowId);
    if (wait === undefined || flow === undefined) return [];
    // If the message went to an inbox, the wait ends when the flow ends, because the run only stores the
    // message. The answer has its own step.
    const { state, endAt } = this.#endOfWait(wait, isInInbox(run) ? flow.endedAt : run.endedAt);
    const messages = this.#chain.messages.get(run.runId);
    const answered = state === "answered";
    const silent = answered && run.kind === "turn" && run.state === "ok" && isSilent(run.reply ?? "");
    const words =
      answered && !silent
        ? this.#quoteText(run.sessionKey, run.reply ?? this.#excerpt(run.error ?? ""))
        : undefined;
    return [
      {
        id: `wait:${wait.callId}`,
        kind: "wait",
        from: flow.requesterKey,
        to: run.sessionKey,
        at: run.acceptedAt,
        state,
        flowId: flow.flowId,
        text: words,
        ...(wait.waiterRunId === "" ? {} : { runId: wait.waiterRunId }),
        ...optional({ endAt, code: answered ? endCodeOf(run) : undefined }),
        ...(silent ? { silent } : {}),
        ...(answered ? this.#opens(run.sessionKey, messages?.answer ?? messages?.input) : {}),
      },
    ];
  }

  #endOfWait(wait: Wait, outcomeAt: number | undefined): { state: StepState; endAt?: number } {
    const { deadlineAt } = wait;
    if (wait.state === "answered") return { state: "answered", endAt: outcomeAt ?? deadlineAt };
    if (wait.state === "open" && this.#now < deadlineAt) return { state: "waiting" };
    const waiter = this.#runs.get(wait.waiterRunId);
    const gaveUpAt = waiter?.endedAt;
    if (waiter !== undefined && isEnded(waiter.state) && gaveUpAt !== undefined && gaveUpAt < deadlineAt)
      return { state: "aborted", endAt: gaveUpAt };
    return { state: "timeout", endAt: deadlineAt };
  }

  #draftRefusal(refusal: Refusal): Draft {
    const { callId, runId, fromKey, toKey, named, tool, code, error, cycle, hop, at } = refusal;
    const to = tool === "sessions_spawn" ? undefined : toKey;
    const { seesAll, sees } = this.#viewer;
    // A call id is `runId:messageId:index`, so it contains the id of the message with the call.
    const messageId = callId.startsWith(`${runId}:`)
      ? callId.slice(runId.length + 1).split(":")[0]
      : undefined;
    const isThere = this.#chain.messages.get(runId)?.input?.sessionId;
    const opens =
      messageId === undefined || isThere === undefined
        ? {}
        : this.#opens(fromKey, { id: messageId, sessionId: isThere });
    const whole = cycle?.map((key) => (sees(key) ? key : NOT_VISIBLE));
    return {
      id: `refused:${callId}`,
      kind: "refused",
      from: fromKey,
      to,
      ...(to === undefined && named !== undefined ? { toName: this.#excerpt(named) } : {}),
      at,
      state: "refused",
      code,
      tool,
      runId,
      hop,
      // Error text may name sessions outside of this chain.
      ...(seesAll ? { error: this.#excerpt(error) } : {}),
      ...optional({ cycle: whole }),
      ...opens,
    };
  }

  #delivery(delivery: Delivery): Draft {
    const { id, sessionKey, runId, state, createdAt: at, settledAt: endAt, code } = delivery;
    const sees = (key: string): boolean => this.#viewer.sees(key);
    const outcome = visibleOutcome(delivery, sees);
    const { channel, to } = outcome.route;
    const messages = runId === undefined ? undefined : this.#chain.messages.get(runId);
    const run = runId === undefined ? undefined : this.#runs.get(runId);
    const opens = run?.sessionKey === sessionKey ? this.#opens(sessionKey, messages?.answer) : {};
    const error = outcome.error === undefined ? undefined : this.#excerpt(outcome.error);
    return {
      id: `delivery:${id}`,
      kind: "delivery",
      from: sessionKey,
      at,
      state,
      route: { channel, to },
      ...optional({ endAt, code, error, runId }),
      text: this.#quoteText(sessionKey, delivery.text),
      ...opens,
    };
  }
}

/** Returns the steps of a chain that one viewer may see, oldest first. */
export function stepsOf(chain: WholeChain, viewer: StepViewer, now: number): ChainStep[] {
  return new Steps(chain, viewer, now).all();
}

/** Returns the sessions that these steps name, in order of appearance. */
export function partiesOf(chain: WholeChain, steps: readonly ChainStep[], redactor: Redactor): ChainParty[] {
  const keys = new Set(steps.flatMap(({ from, to }) => [from, to].filter((key) => key !== undefined)));
  return [...keys].map((key) => {
    const session = chain.sessions.get(key);
    if (session !== undefined) {
      const label = session.label === undefined ? {} : { label: shortExcerpt(redactor, session.label) };
      return { key, ...label };
    }
    return key === NOT_VISIBLE ? { key } : { key, gone: true };
  });
}
