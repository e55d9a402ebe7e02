// Plays random stories of labels with the real rules (core/rules/labels) over a store of three maps, beside a
// plain model that keeps sets of sources.

import {
  countedLabels,
  decideSink,
  joinLabels,
  labelFrom,
  labelOfSession,
} from "../../src/core/rules/labels/labels.ts";
import { outsideInput, webSource } from "../../src/core/rules/labels/sources.ts";
import type { ChainLink, SpawnChain } from "../../src/core/rules/sandbox-policy.ts";
import type { Label, Labels } from "../../src/core/shapes/labels.ts";
import type { Session } from "../../src/core/shapes/session.ts";
import { type Dice, dice } from "../kit/dice.ts";
import { telegramAccount } from "../kit/platforms/people-channel.ts";
import { sampleSession } from "../store/samples.ts";
import { settingsWith } from "../tools/app.ts";

const STEPS_MAX = 12;
const TRUSTED = "web docs.example.com";
const KEYS = [
  "agent:main:main",
  "agent:research:main",
  "agent:main:telegram:group:-100",
  "agent:main:telegram:group:-200",
];
const SITES = ["a.example.com", "b.example.com", "docs.example.com"];
const FILES = ["a.md", "b.md", "c.md"];

const settings = settingsWith({
  owners: ["telegram:1"],
  channels: [telegramAccount()],
  labels: {
    trust: [TRUSTED],
    public: ["file c.md"],
    sinks: { hosts: ["listed.example.com"], tools: [], places: [] },
  },
});

/** A thing with labels: as the rules have it, and as the plain model has it. */
interface Place {
  real: Labels | undefined;
  readonly plain: Readonly<Record<Label, Set<string>>>;
}

const emptyPlace = (): Place => ({ real: undefined, plain: { outside: new Set(), private: new Set() } });

/** Adds everything of `from` to `to`. */
function flow(from: Place, to: Place): void {
  to.real = joinLabels(to.real, from.real);
  for (const label of ["outside", "private"] as const)
    for (const source of from.plain[label]) to.plain[label].add(source);
}

function mark(to: Place, label: Label, source: string | undefined): void {
  if (source === undefined) return;
  to.real = joinLabels(to.real, labelFrom(label, source, 1));
  to.plain[label].add(source);
}

interface Actor extends Place {
  readonly session: Session;
  readonly chain: SpawnChain;
}

function actorFor(key: string): Actor {
  const kind = key.includes(":group:") ? ("group" as const) : ("main" as const);
  const { labels: _, ...blank } = sampleSession();
  const session: Session = { ...blank, key, kind, agentId: key.split(":")[1] ?? "" };
  const link: ChainLink = { key, kind, agentId: session.agentId, spawnDepth: 0 };
  return { ...emptyPlace(), session, chain: [link] };
}

/** Returns the sources that the plain model counts. */
const counted = ({ plain }: Place, label: Label): string[] =>
  [...plain[label]].filter((source) => source !== (label === "outside" ? TRUSTED : "file c.md"));

export interface Story {
  /** Texts that left, with or without a question. */
  readonly sinks: number;
  readonly wrong?: string;
}

/** Plays the story of a seed. */
export function playRules(seed: number): Story {
  const luck: Dice = dice(`labels ${seed}`);
  const actors = KEYS.map(actorFor);
  const files = new Map(FILES.map((file) => [file, emptyPlace()]));
  let chain = emptyPlace();
  let actor = luck.of(actors);
  let sinks = 0;

  /** Lets a session accept a run of the chain. */
  const begin = (next: Actor, source?: string): void => {
    actor = next;
    mark(next, "outside", source);
    flow(chain, next);
    flow(next, chain);
    const own = labelOfSession(settings, next.session);
    chain.real = joinLabels(chain.real, own);
    if (own !== undefined) chain.plain.private.add(`session ${next.session.key}`);
  };
  const learn = (label: Label, source: string | undefined): void => {
    mark(actor, label, source);
    mark(chain, label, source);
  };
  const check = (): string | undefined => {
    sinks += 1;
    const own = labelOfSession(settings, actor.session);
    const labels = countedLabels(settings, joinLabels(joinLabels(actor.real, chain.real), own));
    const isListed = luck.chance(0.1);
    const sink = {
      kind: "fetch" as const,
      to: isListed ? "listed.example.com" : "thief.example.com",
      payload: "",
    };
    const hasRule = luck.chance(0.1);
    const rules = hasRule ? ["fetch after web"] : [];
    const verdict = decideSink({ settings, chain: actor.chain, labels, sink, rules });
    const outside = [...counted(actor, "outside"), ...counted(chain, "outside")];
    const isPrivate =
      own !== undefined || counted(actor, "private").length > 0 || counted(chain, "private").length > 0;
    const isCovered = hasRule && outside.every((source) => source.startsWith("web "));
    const isFree = outside.length === 0 || !isPrivate || isListed || isCovered;
    if ((verdict.kind === "free") === isFree) return undefined;
    return `${actor.session.key} got ${verdict.kind} (${verdict.why}) after ${outside.join(", ")}`;
  };
  const steps: readonly (() => unknown)[] = [
    () => {
      chain = emptyPlace();
      const guest = luck.chance(0.5);
      const input = { text: "", ...(guest ? { guest, sender: `telegram:${luck.below(40)}` } : {}) };
      const next = luck.of(actors);
      begin(next, outsideInput(input, next.session.key));
    },
    () => begin(luck.of(actors)),
    () => learn("outside", webSource(`https://${luck.of(SITES)}/`)),
    () => learn("outside", `mcp server${luck.below(30)}`),
    () => {
      const path = luck.of(FILES);
      learn("private", `file ${path}`);
      const file = files.get(path);
      if (file !== undefined && file.plain.outside.size > 0) learn("outside", `file ${path}`);
    },
    () => {
      const file = emptyPlace();
      flow(actor, file);
      flow(chain, file);
      files.set(luck.of(FILES), file);
    },
    () => {
      const at = luck.below(actors.length);
      const fork = actorFor(KEYS[luck.below(KEYS.length)] ?? "");
      flow(actors[at] ?? fork, fork);
      actors.push(fork);
    },
    () => {
      const at = luck.below(actors.length);
      const fresh = actorFor(actors[at]?.session.key ?? "");
      if (actors[at] === actor) {
        chain = emptyPlace();
        actor = fresh;
      }
      actors[at] = fresh;
    },
    check,
    check,
  ];
  const wrongs = Array.from({ length: 2 + luck.below(STEPS_MAX) }, () => luck.of(steps)());
  const wrong = [...wrongs, check()].find((one) => typeof one === "string");
  return { sinks, ...(typeof wrong === "string" ? { wrong } : {}) };
}
