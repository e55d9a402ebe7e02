// Owns the commands about the place itself: what it is bound to, and who may write there.
// CP1: in a group a binding is changed by whoever asked for the sub-agent that it is for, or by an owner.

import { bindingOf, endedText, setBindingLimits, unbind } from "../../flows/bindings.ts";
import { approvePairing } from "../../flows/pairing.ts";
import { getFlow } from "../../store/flows.ts";
import { type CommandContext, code, excerpt, type Here, isTrusted, keyCode, why } from "./context.ts";
import { mayCancel } from "./work.ts";

const HOUR_MS = 3_600_000;
const HOURS = /^(?:\d{1,6}(?:\.\d{1,3})?|off)$/i;
const USAGE = "/session takes `unbind`, `idle <hours | off>` or `max-age <hours | off>`.";

function hoursWords(ms: number): string {
  return ms === 0 ? "off" : `${Number((ms / HOUR_MS).toFixed(3))} h`;
}

/** When a binding ends by itself, in a sentence. */
function limitWords({ idleMs, maxAgeMs }: { readonly idleMs: number; readonly maxAgeMs: number }): string {
  const ends = [
    ...(idleMs === 0 ? [] : [`after ${hoursWords(idleMs)} without a message`]),
    ...(maxAgeMs === 0 ? [] : [`at the age of ${hoursWords(maxAgeMs)}`]),
  ];
  if (ends.length === 0) return "The binding ends by `/session unbind` only";
  return `The binding ends ${ends.join(", or ")}`;
}

/** Whether this person may change what the place is bound to. */
async function mayRebind(here: Here, flowId: string | undefined): Promise<boolean> {
  if (isTrusted(here.request)) return true;
  const job = flowId === undefined ? undefined : await getFlow(here.unit.tx, flowId);
  return job !== undefined && mayCancel(here, job);
}

/** `/session`: shows the binding of this place, ends it, or changes how long it lasts. */
export async function binding(here: Here): Promise<string> {
  const { parts, unit, request } = here;
  const bound = await bindingOf(unit.tx, request.route);
  if (bound === undefined) return "This place is bound to no session of its own.";
  const [action = "", hours = "", ...rest] = request.args.toLowerCase().split(/\s+/);
  const { idleMs, maxAgeMs } = bound.binding;
  const key = keyCode(here, bound.session.key);
  if (action === "") {
    const limits = `idle ${hoursWords(idleMs)}, max-age ${hoursWords(maxAgeMs)}`;
    return `This place is bound to ${key}: ${limits}. ${USAGE}`;
  }
  const isLimit = (action === "idle" || action === "max-age") && HOURS.test(hours) && rest.length === 0;
  if (!isLimit && (action !== "unbind" || hours !== "")) return USAGE;
  if (!(await mayRebind(here, bound.session.spawn?.flowId))) {
    return "Only whoever asked for this sub-agent, or an owner, can change that.";
  }
  if (action === "unbind") {
    await unbind(parts, parts.engine, unit, { what: request.route, why: "asked", tell: false });
    const ended = excerpt(unit, endedText(bound.binding, bound.session), 300);
    return `${ended}. What is written here is for the agent again.`;
  }
  const number = hours === "off" ? 0 : Number(hours);
  const limits = action === "idle" ? { idleHours: number } : { maxAgeHours: number };
  const set = await setBindingLimits(parts.engine, unit, request.route, limits);
  if (!set.ok) return why(set);
  return `${limitWords(set.value)}.`;
}

/** `/pair approve CODE`. */
export async function pair({ parts, unit, request }: CommandContext): Promise<string> {
  const [action, wanted, ...rest] = request.args.split(/\s+/);
  if (action?.toLowerCase() !== "approve" || wanted === undefined || rest.length > 0) {
    return "/pair takes `approve <code>`: the code is what the person was told.";
  }
  const approved = await approvePairing(parts, wanted, unit);
  if (!approved.ok) return why(approved);
  const { channel, peerId, name } = approved.value;
  const called = name === undefined ? "" : ` (${excerpt(unit, name, 60)})`;
  return `${code(unit, `${channel}:${peerId}`, 300)}${called} may write from now on.`;
}
