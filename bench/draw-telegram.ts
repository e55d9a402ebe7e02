// Draws a chat in Telegram. The texts, their formats and the buttons are those that a real gateway on the
// offline model sends to a Bot API server; the look of a chat is imitated.

import type { Page } from "playwright-core";
import { startTelegram } from "../tests/kit/platforms/telegram/server.ts";
import type { Json, Sent } from "../tests/kit/platforms/telegram/state.ts";
import { homeWith, startProcess } from "../tests/kit/process/gateway-process.ts";
import { until } from "../tests/kit/until.ts";
import { plain } from "./plot.ts";

const BOT_TOKEN = "123456789:AAH-not-a-real-token-of-any-bot-0";
const ADA = { id: 1001, is_bot: false, first_name: "Ada" };
const CHAT = { id: ADA.id, type: "private", first_name: "Ada" };

interface Bubble {
  readonly isMine: boolean;
  readonly text: string;
  readonly entities: readonly Json[];
  readonly buttons: readonly (readonly string[])[];
}

const STYLE = `
  body { margin: 0; font: 15px/1.35 system-ui, "DejaVu Sans", sans-serif; color: #000 }
  #chat { width: 560px; background: #d3e4c6; padding: 0 14px 14px; box-sizing: border-box }
  header { margin: 0 -14px 12px; padding: 9px 16px; background: #fff; border-bottom: 1px solid #dfe3e6 }
  header b { display: block } header small { color: #708499 }
  .row { display: flex; flex-direction: column; align-items: flex-start; margin-top: 7px; max-width: 460px }
  .mine { align-items: flex-end; margin-left: auto }
  .bubble { background: #fff; border-radius: 12px 12px 12px 3px; padding: 7px 11px; white-space: pre-wrap;
    overflow-wrap: anywhere; box-shadow: 0 1px 1px #0002 }
  .mine .bubble { background: #eeffde; border-radius: 12px 12px 3px 12px }
  code, pre { font: 13px/1.4 "DejaVu Sans Mono", monospace; margin: 0; color: #336; white-space: pre-wrap }
  pre { background: #f1f4f7; border-left: 3px solid #5b9bd1; border-radius: 5px; padding: 5px 8px }
  blockquote { margin: 0; padding: 3px 8px; border-left: 3px solid #5b9bd1; background: #eef4fa }
  .buttons { display: flex; gap: 4px; width: 100%; min-width: 360px; margin-top: 4px }
  .buttons span { flex: 1; text-align: center; padding: 8px; border-radius: 7px; color: #fff;
    background: #7a9a6ccc }
`;

const TAGS: Readonly<Record<string, string>> = {
  bold: "b",
  italic: "i",
  strikethrough: "s",
  code: "code",
  pre: "pre",
  text_link: "u",
  blockquote: "blockquote",
};

/** Puts each piece of the text into the tags of the formats that cover it. */
function formatText({ text, entities }: Bubble): string {
  const edges = entities.flatMap(({ offset, length }) => [offset, offset + length]);
  const cuts = [...new Set([0, text.length, ...edges])].sort((a, b) => a - b);
  const pieces = cuts.slice(1).map((end, at) => {
    const begin = cuts[at] ?? 0;
    const covering = entities.filter(({ offset, length }) => offset <= begin && offset + length >= end);
    const tags = covering.map(({ type }) => TAGS[type] ?? "span");
    const inside = plain(text.slice(begin, end));
    return tags.reduce((inner, tag) => `<${tag}>${inner}</${tag}>`, inside);
  });
  return pieces.join("");
}

function renderBubble(bubble: Bubble): string {
  const buttons = bubble.buttons.map((row) => {
    const labels = row.map((label) => `<span>${plain(label)}</span>`);
    return `<div class="buttons">${labels.join("")}</div>`;
  });
  const side = bubble.isMine ? "row mine" : "row";
  return `<div class="${side}"><div class="bubble">${formatText(bubble)}</div>${buttons.join("")}</div>`;
}

/** Returns a message with `~` for the home folder, by which its later formats move. */
function makeBubble(message: string | Sent, home: string): Bubble {
  if (typeof message === "string") return { isMine: true, text: message, entities: [], buttons: [] };
  const parts = message.text.split(home);
  const place = (at: number): number => {
    const before = message.text.slice(0, at).split(home).length - 1;
    return at - before * (home.length - 1);
  };
  const entities = message.entities.map(({ offset, length, ...more }) => {
    return { ...more, offset: place(offset), length: place(offset + length) - place(offset) };
  });
  const buttons = message.buttons.map((row) => row.map(({ text }) => String(text)));
  return { isMine: false, text: parts.join("~"), entities, buttons };
}

/** Holds a conversation with a gateway over Telegram's Bot API. Returns its messages in their order. */
async function holdConversation(): Promise<Bubble[]> {
  const server = await startTelegram();
  const bot = server.addBot(BOT_TOKEN, "parley_bot");
  server.addChat({ id: CHAT.id, type: "private" });
  const home = homeWith({
    agents: {
      list: [
        { id: "main", default: true, name: "Main" },
        { id: "research", name: "Research" },
      ],
    },
    tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true } },
    channels: { telegram: { botToken: BOT_TOKEN, apiRoot: server.url, allowFrom: [String(ADA.id)] } },
    commands: { owners: [`telegram:${ADA.id}`] },
  });
  await startProcess({ home });
  const messages: (string | Sent)[] = [];
  let seen = 0;
  const note = (): void => {
    messages.push(...server.sent.slice(seen));
    seen = server.sent.length;
  };
  /** Ada writes. Resolves when the bot has sent a text that matches. */
  const say = async (text: string, answer: RegExp): Promise<Sent> => {
    messages.push(text);
    server.nextMessageId += 1;
    const facts = { message_id: server.nextMessageId, date: Math.floor(Date.now() / 1_000) };
    server.push(bot, { message: { ...facts, chat: CHAT, from: ADA, text } });
    const first = seen;
    const message = await until(() => server.sent.slice(first).find((one) => answer.test(one.text)));
    note();
    return message;
  };
  await say("list sessions", /./);
  await say("ask research: what should we check before a release?", /research answered/);
  await say("spawn: wait 3 seconds, then say the files are counted", /\w/);
  // The sub-agent's result comes by itself.
  await until(() => server.sent.length > seen);
  note();
  await say("run: date -u +%A > today.txt", /asks for permission/);
  return messages.map((message) => makeBubble(message, home));
}

/** Returns a picture of a chat, as PNG. */
export async function drawTelegram(page: Page): Promise<Buffer> {
  const bubbles = await holdConversation();
  const head = "<header><b>Parley</b><small>bot</small></header>";
  await page.setContent(
    `<style>${STYLE}</style><main id="chat">${head}${bubbles.map(renderBubble).join("")}</main>`,
  );
  return page.locator("#chat").screenshot();
}
