// Checks every delivery at the end of a story: its row matches the actions of its channel (I5).

import { splitText } from "../../../../src/core/text/text-split.ts";
import type { Attempt, Story } from "../../story.ts";
import { PART_CHARS } from "../../world/channels.ts";
import type { Row } from "../../world/database.ts";
import type { Books } from "./books.ts";

/** Error codes of rows that were kept for operators and never passed to a channel. */
const KEPT = /^requester_|^session_|^run_|^chain_limit$/;

function channelOf(row: Row): string {
  return (JSON.parse(String(row.route_json)) as { channel: string }).channel;
}

/**
 * Checks the parts of a delivery: people saw each at most once, and it counts as sent only if the channel
 * said so.
 */
function checkParts(story: Story, row: Row, attempts: readonly Attempt[], about: string): void {
  const channel = channelOf(row);
  const parts = channel === "sure" ? splitText(String(row.text), PART_CHARS) : [String(row.text)];
  for (const [at, text] of parts.entries()) {
    const shown = story.shown.filter((one) => one.deliveryId === row.id && one.part === at + 1);
    const said = attempts.filter((one) => one.part === at + 1).map((one) => one.outcome);
    if (shown.length > 1 && !story.retried.has(String(row.id)))
      story.wrong("I5", `${about}: people see part ${at + 1} ${shown.length} times`);
    const [first] = shown;
    // The text of a delivery is blanked with its session.
    if (first !== undefined && first.text !== text && row.text !== "")
      story.wrong("I5", `${about}: part ${at + 1} is ${first.text}`);
    if (row.state === "sent" && (!said.includes("sent") || shown.length === 0))
      story.wrong("I5", `${about}: part ${at + 1} was answered ${said.join() || "never"}`);
    const isAgain = said.filter((outcome) => outcome === "sent").length > 1 && !mayForget(story);
    if (isAgain && !story.retried.has(String(row.id)))
      story.wrong("I5", `${about}: part ${at + 1} is sent again after it was acknowledged`);
  }
  const order = attempts.map((one) => one.part);
  const back = order.findIndex((part, at) => part < (order[at - 1] ?? 0));
  if (back >= 0 && !story.retried.has(String(row.id)))
    story.wrong("I5", `${about}: parts are made as ${order.join()}`);
}

/**
 * Returns true if a process may have failed to record an acknowledgement, because it died or its disk was
 * full.
 */
const mayForget = (story: Story): boolean => story.deaths > 0 || story.plan.features.fullDisk;

function checkFailed(story: Story, row: Row, attempts: readonly Attempt[], about: string): void {
  const last = attempts.at(-1)?.outcome;
  const code = String(row.code);
  if (code === "ambiguous") {
    if (channelOf(row) !== "plain")
      story.wrong("I5", `${about}, and its channel recognises what it has shown`);
    if (last === "sent" && attempts.length === Number(attempts.at(-1)?.parts) && !mayForget(story))
      story.wrong("I5", `${about}, and its channel has acknowledged it`);
    return;
  }
  if (code === "refused" && last !== undefined && last !== "refused")
    story.wrong("I5", `${about} after ${last}`);
  if (KEPT.test(code) && last !== undefined && !story.retried.has(String(row.id)))
    story.wrong("I5", `${about}, and a channel was given it`);
}

export function checkOutbox(story: Story, books: Books): void {
  const attempts = Map.groupBy(story.attempts, (one) => one.deliveryId);
  for (const row of books.deliveries) {
    const own = attempts.get(String(row.id)) ?? [];
    const about = `delivery ${String(row.id)} (${String(row.state)} ${String(row.code)}) on ${channelOf(row)}`;
    if (row.state === "pending") story.wrong("I2", `${about} is never settled`);
    if (row.attempt_open !== 0) story.wrong("I5", `${about} has an attempt without an end`);
    if (row.state === "skipped" && own.length > 0) story.wrong("I5", `${about} was handed to its channel`);
    if (row.state === "failed") checkFailed(story, row, own, about);
    if (channelOf(row) === "sure" || channelOf(row) === "plain") checkParts(story, row, own, about);
  }
}
