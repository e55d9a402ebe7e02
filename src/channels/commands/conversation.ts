// Implements the commands that change a conversation: start a new one, summarise or fork it, and set its
// model, thinking level, verbose level and send policy.
// flows/session/lifecycle.ts validates the arguments. An invalid argument changes nothing.

import { createGate } from "../../access/token.ts";
import {
  modelNames,
  modelOf,
  THINKING_LEVELS,
  thinkingNamed,
  thinkingOf,
} from "../../core/shapes/settings/settings.ts";
import { forkIn } from "../../flows/session/fork.ts";
import {
  COMPACT_INPUT,
  mayCompact,
  type PatchRequest,
  patchIn,
  resetIn,
  VERBOSE_LEVELS,
} from "../../flows/session/lifecycle.ts";
import { activeRuns } from "../../store/queries/runs/runs.ts";
import { lastMessages } from "../../store/queries/transcripts/transcripts.ts";
import { type ConversationContext, code, count, why } from "./context.ts";

const DEFAULT = "default";
const MODELS_SHOWN_MAX = 30;

export async function beginAnew({ parts, unit, session, request }: ConversationContext): Promise<string> {
  if (request.args !== "") return `/${request.command} takes no arguments; nothing was changed.`;
  const running = await activeRuns(unit.tx, session.key);
  const reset = await resetIn(parts, unit, session);
  if (!reset.ok) return why(reset);
  const stopped = running.length === 0 ? "" : ` ${count(running.length, "run")} of the earlier one stopped.`;
  return `A new conversation begins; the earlier one is kept in the transcripts.${stopped}`;
}

/** Queues a run that summarises the older messages; in a chat, its answer is sent there. */
export async function compactHere(here: ConversationContext): Promise<string> {
  const { parts, unit, session, request } = here;
  if (request.args !== "") return "/compact takes no arguments; nothing was summarised.";
  const able = mayCompact(parts.settings, session);
  if (!able.ok) return why(able);
  const guest = request.sender.isOwner ? {} : { guest: true };
  const accepted = await parts.engine.acceptIn(unit, {
    sessionKey: session.key,
    input: { ...COMPACT_INPUT, ...guest },
    ...(request.operator === undefined ? { route: request.route } : {}),
  });
  return accepted.ok ? "The older messages will be summarised. Nothing is deleted." : why(accepted);
}

/** Forks the conversation at its newest message. */
export async function forkHere({ parts, unit, session, request }: ConversationContext): Promise<string> {
  const { operator } = request;
  if (request.args !== "") return "/fork takes no arguments; nothing was forked.";
  const [newest] = await lastMessages(unit.tx, session.sessionId, 1, { includeTools: true });
  if (newest === undefined) return "This conversation has no messages yet.";
  const sees =
    operator === undefined
      ? () => true
      : createGate(parts.settings, { ...operator, role: "operator" }, "list");
  const forked = await forkIn(parts, unit, operator, { key: session.key, at: newest.id, sees });
  if (!forked.ok) return why(forked);
  const { runs, jobs, waits } = forked.value.leftBehind;
  const kept = [
    [runs, "run"],
    [jobs, "job"],
    [waits, "wait"],
  ] as const;
  const words = kept.filter(([number]) => number > 0).map(([number, what]) => count(number, what));
  const left = words.length === 0 ? "" : ` It leaves behind: ${words.join(", ")}.`;
  return `Forked: ${code(unit, forked.value.session.key, 512)}.${left}`;
}

async function set(here: ConversationContext, patch: PatchRequest, done: string): Promise<string> {
  const patched = await patchIn(here.parts, here.unit, here.session, patch);
  return patched.ok ? done : why(patched);
}

export async function chooseModel(here: ConversationContext): Promise<string> {
  const { parts, session, request } = here;
  const wanted = request.args;
  if (wanted === "") {
    const names = modelNames(parts.settings.providers);
    const shown = names.slice(0, MODELS_SHOWN_MAX).map((name) => code(here.unit, name, 200));
    const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : "";
    const own = session.model === undefined ? "the agent's" : "chosen here";
    return (
      `The model is ${code(here.unit, modelOf(parts.settings, session), 200)} (${own}). ` +
      `There is: ${shown.join(", ")}${more}. \`/model default\` takes the agent's again.`
    );
  }
  if (wanted.toLowerCase() === DEFAULT)
    return set(here, { model: null }, "This conversation uses the agent's own model again.");
  return set(
    here,
    { model: wanted },
    `The model is ${code(here.unit, wanted, 200)} from the next message on.`,
  );
}

/** Sets a level to one of its valid values. Without an argument, shows the current level. */
async function chooseLevel(
  here: ConversationContext,
  what: { name: string; field: "thinkingLevel" | "verboseLevel"; now: string; valid: readonly string[] },
): Promise<string> {
  const { name, field, now, valid } = what;
  const wanted = here.request.args.toLowerCase();
  const list = `Valid: ${valid.join(", ")}, and ${DEFAULT} for the agent's own setting.`;
  if (wanted === "") return `${name} is ${code(here.unit, now)}. ${list}`;
  if (wanted === DEFAULT) return set(here, { [field]: null }, `${name} follows the agent's setting again.`);
  const meant = field === "thinkingLevel" ? (thinkingNamed(wanted) ?? wanted) : wanted;
  if (!valid.includes(meant)) return `${name} can't be ${code(here.unit, wanted)}. ${list}`;
  return set(here, { [field]: meant }, `${name} is ${code(here.unit, meant)} from the next message on.`);
}

export function chooseThinking(here: ConversationContext): Promise<string> {
  const now = thinkingOf(here.parts.settings, here.session);
  return chooseLevel(here, { name: "Thinking", field: "thinkingLevel", now, valid: THINKING_LEVELS });
}

export function chooseVerbosity(here: ConversationContext): Promise<string> {
  const now = here.session.verboseLevel ?? "off";
  return chooseLevel(here, { name: "Verbose", field: "verboseLevel", now, valid: VERBOSE_LEVELS });
}

const SEND_WORDS = {
  on: {
    policy: "allow",
    told: "Outgoing text of this conversation is allowed, even if the rules in the settings deny it.",
  },
  off: {
    policy: "deny",
    told: "Outgoing text of this conversation is blocked until /send on or /send inherit.",
  },
  inherit: {
    policy: null,
    told: "The rules in the settings decide whether outgoing text of this conversation is allowed.",
  },
} as const;

export async function chooseSending(here: ConversationContext): Promise<string> {
  const wanted = here.request.args.toLowerCase();
  if (wanted === "on" || wanted === "off" || wanted === "inherit") {
    const { policy, told } = SEND_WORDS[wanted];
    return set(here, { sendPolicy: policy }, told);
  }
  const now = { allow: "on", deny: "off", inherit: "inherit" }[here.session.sendPolicy ?? "inherit"];
  return `/send takes on, off or inherit. It is ${code(here.unit, now)} now; nothing was changed.`;
}
