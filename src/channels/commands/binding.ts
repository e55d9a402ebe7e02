// Implements the commands for the chat itself: its binding to a session, and the people who may write there.
// CP1: in a group, only an owner or the person who started the sub-agent may change the binding.

import { bindingOf, endedText, setBindingLimits, unbind } from "../../flows/delivery/bindings.ts";
import { approvePairing } from "../../flows/delivery/pairing.ts";
import { getFlow } from "../../store/queries/chains/flows.ts";
import {
  type CommandContext,
  type ConversationContext,
  code,
  excerpt,
  isTrusted,
  keyCode,
  why,
} from "./context.ts";
import { mayCancel } from "./work.ts";

const HOUR_MS = 3_600_000;
const HOURS = /^(?:\d{1,6}(?:\.\d{1,3})?|off)$/i;
const USAGE = "/session takes `unbind`, `idle <hours | off>` or `max-age <hours | off>`.";

function hoursWords(ms: number): string {
  return ms === 0 ? "off" : `${Number((ms / HOUR_MS).toFixed(3))} h`;
}

/** Returns a sentence that says when a binding expires. */
function limitWords({ idleMs, maxAgeMs }: { readonly idleMs: number; readonly maxAgeMs: number }): string {
  const ends = [
    ...(idleMs === 0 ? [] : [`after ${hoursWords(idleMs)} without a message`]),
    ...(maxAgeMs === 0 ? [] : [`at the age of ${hoursWords(maxAgeMs)}`]),
  ];
  if (ends.length === 0) return "The binding lasts until `/session unbind`";
  return `The binding ends ${ends.join(", or ")}`;
}

/** Returns whether the sender may change the binding of this chat. */
async function mayRebind(here: ConversationContext, flowId: string | undefined): Promise<boolean> {
  if (isTrusted(here.request)) return true;
  const job = flowId === undefined ? undefined : await getFlow(here.unit.tx, flowId);
  return job !== undefined && mayCancel(here, job);
}

/** Runs `/session`: shows this chat's binding, removes it, or changes its time limits. */
export async function binding(here: ConversationContext): Promise<string> {
  const { parts, unit, request } = here;
  const bound = await bindingOf(unit.tx, request.route);
  if (bound === undefined) return "This chat is not bound to a session.";
  const [action = "", hours = "", ...rest] = request.args.toLowerCase().split(/\s+/);
  const { idleMs, maxAgeMs } = bound.binding;
  const key = keyCode(here, bound.session.key);
  if (action === "") {
    const limits = `idle ${hoursWords(idleMs)}, max-age ${hoursWords(maxAgeMs)}`;
    return `This chat is bound to ${key}: ${limits}. ${USAGE}`;
  }
  const isLimit = (action === "idle" || action === "max-age") && HOURS.test(hours) && rest.length === 0;
  if (!isLimit && (action !== "unbind" || hours !== "")) return USAGE;
  if (!(await mayRebind(here, bound.session.spawn?.flowId))) {
    return "Only the person who started this sub-agent, or an owner, can change that.";
  }
  if (action === "unbind") {
    await unbind(parts, unit, { what: request.route, why: "asked", tell: false });
    const ended = excerpt(unit, endedText(bound.binding, bound.session), 300);
    return `${ended}. Messages here go to the agent again.`;
  }
  const number = hours === "off" ? 0 : Number(hours);
  const limits = action === "idle" ? { idleHours: number } : { maxAgeHours: number };
  const set = await setBindingLimits(unit, request.route, limits);
  if (!set.ok) return why(set);
  return `${limitWords(set.value)}.`;
}

/** Runs `/pair approve CODE`. */
export async function pair({ parts, unit, request }: CommandContext): Promise<string> {
  const [action, wanted, ...rest] = request.args.split(/\s+/);
  if (action?.toLowerCase() !== "approve" || wanted === undefined || rest.length > 0) {
    return "/pair takes `approve <code>`: use the code that the person received.";
  }
  const approved = await approvePairing(parts, wanted, unit);
  if (!approved.ok) return why(approved);
  const { channel, peerId, name } = approved.value;
  const called = name === undefined ? "" : ` (${excerpt(unit, name, 60)})`;
  return `${code(unit, `${channel}:${peerId}`, 300)}${called} can write from now on.`;
}
