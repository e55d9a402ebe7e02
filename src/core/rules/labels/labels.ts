// Joins labels, and decides whether a run that has them may let a text leave (I15, I16).
// LA1: a run that has read content from outside and private content needs consent before a sink. One that has
//      read content from outside needs it before it makes a job. Anything else is free.
// LA2: labels only grow. A reset or an owner's release ends them.
// LA3: the strictest mode of the session's agent and of its ancestors' agents applies (I13).

import { optional } from "../../optional.ts";
import type { Arrival, Label, Labels, Mark, Sink, SinkKind } from "../../shapes/labels.ts";
import type { Session } from "../../shapes/session.ts";
import {
  type AgentSettings,
  agentOf,
  type LabelMode,
  type Settings,
} from "../../shapes/settings/settings.ts";
import { matchesAny } from "../../text/pattern.ts";
import { isOwner } from "../inbound-policy.ts";
import { holdsPrivate } from "../prompt/memory.ts";
import type { SpawnChain } from "../sandbox-policy.ts";
import { NOT_VISIBLE } from "../visibility.ts";

/** Maximum number of sources of one label. One more stands for all further ones. */
const MARKS_MAX = 20;
const FURTHER = "further sources";

const NONE: readonly Mark[] = [];

function joinMarks(known: readonly Mark[] = NONE, added: readonly Mark[] = NONE): readonly Mark[] {
  const sources = new Set(known.map(({ source }) => source));
  if (sources.has(FURTHER)) return known;
  const fresh = added.filter(({ source }) => !sources.has(source));
  if (fresh.length === 0) return known;
  const all = [...known, ...fresh];
  const [first] = all.slice(MARKS_MAX);
  return first === undefined ? all : [...all.slice(0, MARKS_MAX), { ...first, source: FURTHER }];
}

/** Returns the labels of a text that was made of both. Returns `known` itself if it has all of `added`. */
export function joinLabels(known: Labels | undefined, added: Labels | undefined): Labels | undefined {
  if (added === undefined || known === undefined) return known ?? added;
  const outside = joinMarks(known.outside, added.outside);
  const hidden = joinMarks(known.private, added.private);
  if (outside === (known.outside ?? NONE) && hidden === (known.private ?? NONE)) return known;
  return labelsFrom(outside, hidden);
}

function labelsFrom(outside: readonly Mark[], hidden: readonly Mark[]): Labels {
  return {
    ...(outside.length === 0 ? {} : { outside }),
    ...(hidden.length === 0 ? {} : { private: hidden }),
  };
}

/** Returns the marks that pass a test, or undefined if none does. */
export function filterMarks(labels: Labels | undefined, test: (mark: Mark) => boolean): Labels | undefined {
  const [outside, hidden] = [labels?.outside?.filter(test) ?? NONE, labels?.private?.filter(test) ?? NONE];
  return outside.length + hidden.length === 0 ? undefined : labelsFrom(outside, hidden);
}

/** Returns the labels as they come into a session or a chain. */
export function withArrival(labels: Labels | undefined, arrival: Arrival): Labels | undefined {
  const arrive = (marks: readonly Mark[] = NONE): readonly Mark[] =>
    marks.map((mark) => ({ ...mark, arrival }));
  return labels && labelsFrom(arrive(labels.outside), arrive(labels.private));
}

/** Is not written as JSON. */
const LABELS_OF_TEXTS = Symbol("labels");

/** Adds the labels of its texts to an answer of a tool. They are not part of what the caller gets. */
export const withLabels = <T extends object>(answer: T, labels: Labels | undefined): T =>
  labels === undefined ? answer : { ...answer, [LABELS_OF_TEXTS]: labels };

/** Returns the labels that a tool has added to its answer. */
export const labelsIn = (answer: { readonly [LABELS_OF_TEXTS]?: Labels } | undefined): Labels | undefined =>
  answer?.[LABELS_OF_TEXTS];

/** Returns the label with one source. */
export function labelFrom(label: Label, source: string, since: number, runId?: string): Labels {
  return { [label]: [{ source, since, ...(runId === undefined ? {} : { runId }) }] };
}

/** Returns the label of a session whose texts are private by its kind or by `labels.private`. */
export function labelOfSession(settings: Settings, session: Session): Labels | undefined {
  const { key, createdAt, spawnedBy } = session;
  const { labels } = settings;
  // A sub-agent has the labels of the texts that its requester gave it.
  const isOwners = spawnedBy === undefined && holdsPrivate(session, settings);
  const isPrivate = matchesAny(labels.private, key) || isOwners;
  const own = isPrivate ? labelFrom("private", `session ${key}`, createdAt) : undefined;
  return own && countedLabels({ labels }, own).private && own;
}

/** Returns the labels of everything that a session knows. */
export function labelsKnownTo(settings: Settings, session: Session): Labels | undefined {
  return joinLabels(session.labels, labelOfSession(settings, session));
}

/** Returns the labels that count: without trusted sources, and without public ones. */
export function countedLabels({ labels }: Pick<Settings, "labels">, known: Labels = {}): Labels {
  const count = (marks: readonly Mark[] = NONE, left: readonly string[]): readonly Mark[] =>
    left.length === 0
      ? marks
      : marks.filter(
          ({ source }) => !matchesAny(left, source) && !matchesAny(left, source.replace(/^session /, "")),
        );
  return labelsFrom(count(known.outside, labels.trust), count(known.private, labels.public));
}

const STRICTNESS: readonly LabelMode[] = ["off", "watch", "ask", "deny"];

/** Returns the mode of a session (LA3). */
export function labelModeFor(chain: SpawnChain, settings: Settings): LabelMode {
  const modes = chain.map((link) => modeOf(agentOf(settings, link), settings));
  return modes.reduce((a, b) => (STRICTNESS.indexOf(b) > STRICTNESS.indexOf(a) ? b : a));
}

const modeOf = ({ labels }: Pick<AgentSettings, "labels">, settings: Settings): LabelMode =>
  labels?.mode ?? settings.labels.mode;

/** Returns the kinds of the sources, in order: `web` of `web example.com`. */
export const sourceKinds = (marks: readonly Mark[] = NONE): string[] =>
  [...new Set(marks.map(({ source }) => source.split(" ", 1)[0] ?? ""))].sort();

/** Returns whether the sources are all known, so that an owner may allow the call for longer than once. */
export const hasAllSources = ({ outside = NONE }: Labels): boolean =>
  outside.every(({ source }) => source !== FURTHER);

/** Returns the rule that an owner makes who allows such a call for longer than once, as it is stored. */
export const labelRule = (sinkKind: string, { outside }: Labels): string =>
  `${sinkKind} after ${sourceKinds(outside).join(", ")}`;

function coversCall(rule: string, sink: Sink, { outside }: Labels): boolean {
  const [kind = "", after = ""] = rule.split(" after ");
  const kinds = after.split(", ");
  return kind === sink.kind && sourceKinds(outside).every((one) => kinds.includes(one));
}

interface SinkQuestion {
  readonly settings: Settings;
  readonly chain: SpawnChain;
  /** The labels that count. */
  readonly labels: Labels;
  readonly sink: Sink;
  /** The rules of owners that apply to the session. */
  readonly rules: readonly string[];
}

/** `why` names the setting or the rule that decides, or the labels that are missing. */
export interface SinkVerdict {
  readonly kind: "free" | "ask" | "deny" | "watch";
  readonly why: string;
  /** The labels, with the private text that the call itself reads. */
  readonly labels: Labels;
}

/** The sinks whose destinations are places. */
const PLACES: readonly SinkKind[] = ["message", "session", "peer"];

/** Returns the setting that lists this destination, if one does. */
function listedBy({ owners, labels }: Settings, { kind, to }: Sink): string | undefined {
  const { hosts, tools, places } = labels.sinks;
  if (kind === "fetch") return matchesAny(hosts, to) ? "labels.sinks.hosts" : undefined;
  if (kind === "mcp") return matchesAny(tools, to) ? "labels.sinks.tools" : undefined;
  if (!PLACES.includes(kind)) return undefined;
  if (matchesAny(places, to)) return "labels.sinks.places";
  const [channel = "", id = ""] = [to.slice(0, to.indexOf(":")), to.slice(to.indexOf(":") + 1)];
  return kind === "message" && isOwner(owners, channel, { id }) ? "commands.owners" : undefined;
}

/** Decides whether a call may have its effect (LA1). */
export function decideSink({ settings, chain, labels: known, sink, rules }: SinkQuestion): SinkVerdict {
  const own = sink.reads === undefined ? undefined : labelFrom("private", sink.reads, 0);
  const labels = countedLabels(settings, joinLabels(known, own));
  const free = (why: string): SinkVerdict => ({ kind: "free", why, labels });
  const mode = labelModeFor(chain, settings);
  if (mode === "off") return free("labels.mode is off");
  if (labels.outside === undefined) return free("the session has read nothing from outside");
  if (labels.private === undefined && sink.kind !== "job")
    return free("the session has read nothing private");
  const listed = listedBy(settings, sink);
  if (listed !== undefined) return free(`${listed} lists ${sink.to}`);
  const rule = mode === "deny" ? undefined : rules.find((one) => coversCall(one, sink, labels));
  if (rule !== undefined) return free(`an owner allows ${rule}`);
  return { kind: mode, why: `labels.mode is ${mode}`, labels };
}

const WORDS: Readonly<Record<Sink["kind"], string>> = {
  fetch: "fetch from",
  exec: "run a command on",
  message: "send to",
  mcp: "call",
  peer: "send to",
  node: "run a command on the device",
  session: "write to the session",
  job: "make a job for",
};

/** Says what a call would do. */
export const describeSink = ({ kind, to }: Pick<Sink, "kind" | "to">): string => `${WORDS[kind]} ${to}`;

/** Returns the sources of a label as words. */
export const sourcesOf = (marks: readonly Mark[] = NONE): string =>
  marks.map(({ source }) => source).join(", ");

/** Hides the keys of sessions that the caller may not see, and the steps with which the texts came. */
export function shownLabels(labels: Labels, sees: (sessionKey: string) => boolean): Labels {
  const show = ({ arrival: _, ...mark }: Mark): Mark => {
    const [kind = "", key = ""] = mark.source.split(/ (.*)/s);
    const isKey = kind === "session" || (kind === "guest" && key.startsWith("agent:"));
    return isKey && !sees(key) ? { ...mark, source: `${kind} ${NOT_VISIBLE}` } : mark;
  };
  return optional({ outside: labels.outside?.map(show), private: labels.private?.map(show) });
}
