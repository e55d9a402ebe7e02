// Fake channels that accept a text, refuse it, ask for a pause, fail, or lose their answer. A text that was
// passed to the channel is shown or lost later, even if the process crashes.

import type { Channel, DeliveryOutcome, OutgoingMessage } from "../../../src/channels/channel.ts";
import type { Dice } from "../../kit/dice.ts";
import type { Story } from "../story.ts";

/** A fault of the channel itself, as an exception. */
export class ChannelBroke extends Error {}

/** Maximum length of a message, on the channel that has a limit. */
export const PART_CHARS = 60;

type Fate = "sent" | "refused" | "retry" | "lost_answer" | "never_left";

function fateOf(story: Story, luck: Dice): Fate {
  const trouble = story.settling ? 0.02 : story.plan.features.channelTrouble;
  if (!luck.chance(trouble)) return "sent";
  return luck.of(["refused", "retry", "retry", "lost_answer", "lost_answer", "never_left"] as const);
}

/**
 * I5: checks a delivery's row when a channel is called: the attempt is recorded, the part is the next one,
 * and no earlier delivery waits.
 */
async function checkHanded(story: Story, message: OutgoingMessage): Promise<void> {
  const { deliveryId, part, route } = message;
  const [row] = await story.look("select * from deliveries where id = ?", deliveryId);
  const about = `delivery ${deliveryId} part ${part}`;
  if (row === undefined) story.wrong("I5", `${about} has no row`);
  if (row.state !== "pending")
    story.wrong("I5", `${about} is handed over while its row is ${String(row.state)}`);
  if (row.attempt_open !== 1) story.wrong("I5", `${about} is handed over before the attempt is on record`);
  if (Number(row.next_attempt_at) > story.time.now() && part === 1)
    story.wrong("I5", `${about} is handed over before its pause is over`);
  if (row.parts_sent !== part - 1)
    story.wrong("I5", `${about} is handed over, and ${String(row.parts_sent)} are acknowledged`);
  if (story.doubtful.has(deliveryId) && !story.retried.has(deliveryId))
    story.wrong("I5", `${about} is made again, and its channel can't tell whether it has shown it`);
  if (route.channel !== JSON.parse(String(row.route_json)).channel)
    story.wrong("I5", `${about} goes elsewhere`);
  if (story.retried.size > 0) return;
  const earlier = await story.look(
    "select id from deliveries where state = 'pending' and route_key = ? and seq < ?",
    String(row.route_key),
    Number(row.seq),
  );
  if (earlier.length > 0) story.wrong("I5", `${about} overtakes ${String(earlier[0]?.id)} on its route`);
}

interface Ends {
  /** Returns true if the calling process still runs. */
  alive(): boolean;
}

function note(story: Story, message: OutgoingMessage, deduplicates: boolean): void {
  const { deliveryId, part, text } = message;
  const again = story.shown.some((one) => one.deliveryId === deliveryId && one.part === part);
  if (again && deduplicates) return;
  story.trace.add(`people read part ${part} of delivery ${deliveryId}`);
  story.shown.push({ deliveryId, part, text, route: JSON.stringify(message.route) });
}

/** Returns the outcome of one delivery attempt, after its duration. */
async function attempt(
  story: Story,
  message: OutgoingMessage,
  deduplicates: boolean,
): Promise<DeliveryOutcome> {
  const luck = story.luck("channels");
  const fate = fateOf(story, luck);
  const outcome = { sent: "sent", refused: "refused", retry: "retry" } as const;
  const said = fate === "lost_answer" || fate === "never_left" ? "broke" : outcome[fate];
  const silent = !deduplicates && said === "broke" && luck.chance(0.4);
  const entry = { deliveryId: message.deliveryId, part: message.part, parts: message.parts };
  const at = story.attempts.push({ ...entry, outcome: "open" }) - 1;
  story.trace.add(
    `channel ${message.route.channel} is given ${entry.deliveryId} part ${entry.part}: ${fate}`,
  );
  await story.time.pass(luck.below(60));
  if (fate === "sent" || fate === "lost_answer") note(story, message, deduplicates);
  await story.time.pass(luck.below(luck.chance(0.1) ? 3_000 : 30));
  story.attempts[at] = { ...entry, outcome: silent ? "unknown" : said };
  if (fate === "sent") return { kind: "sent" };
  if (fate === "refused") return { kind: "refused", error: "the channel says no" };
  if (fate === "retry")
    return { kind: "retry", error: "later", ...(luck.chance(0.5) ? { afterMs: 10 } : {}) };
  if (silent) return { kind: "unknown", error: "the answer was lost" };
  throw new ChannelBroke("the line broke");
}

function channelOf(
  story: Story,
  ends: Ends,
  facts: Pick<Channel, "id" | "deduplicates" | "textMaxChars">,
): Channel {
  return {
    ...facts,
    async deliver(message) {
      await checkHanded(story, message);
      const settled = attempt(story, message, facts.deduplicates === true);
      // A caller that has crashed gets no answer.
      const outcome = await settled.catch((error: unknown) =>
        ends.alive() ? Promise.reject(error) : undefined,
      );
      return ends.alive() && outcome !== undefined ? outcome : new Promise(() => {});
    },
  };
}

/** Returns the channels. The channel `sure` detects a text that it has already shown; `plain` does not. */
export function channelsOf(story: Story, ends: Ends): Channel[] {
  return [
    channelOf(story, ends, { id: "sure", deduplicates: true, textMaxChars: PART_CHARS }),
    channelOf(story, ends, { id: "plain", deduplicates: false }),
  ];
}
