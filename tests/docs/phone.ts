// Plays the conversations of a document on a phone: the fake Telegram platform, on which Ada writes to a bot.
// PH1: in a ```chat block a line after "> " is written by Ada; the others are all the texts of the bot since
// then, compared as in shown.ts. PH2: /allow and /deny take the id that the bot named last.

import { startTelegram, type TelegramServer } from "../kit/platforms/telegram/server.ts";
import { PATIENCE_MS } from "../kit/until.ts";
import { mismatch } from "./shown.ts";

const ADA = 1001;

/** Matches the id of a request in an answer to it; the id differs each time. */
const ID = /(\/(?:allow|deny)) [0-9a-f]{8}\b/g;

const moment = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 25));

export class Phone {
  readonly #server: TelegramServer;
  /** Number of the bot's texts that the document has shown. */
  #seen = 0;

  private constructor(server: TelegramServer) {
    this.#server = server;
  }

  /** Starts the platform with one bot, to which nobody has written. */
  static async open(token: string): Promise<Phone> {
    const server = await startTelegram();
    server.addBot(token, "parley_test_bot");
    server.addChat({ id: ADA, type: "private" });
    return new Phone(server);
  }

  get url(): string {
    return this.#server.url;
  }

  /** Plays one block. Returns the text that differs from the document. */
  async play(lines: readonly string[]): Promise<string | undefined> {
    let shown: string[] = [];
    for (const line of lines) {
      if (!line.startsWith("> ")) {
        shown.push(line);
        continue;
      }
      const problem = await this.#await(shown);
      if (problem !== undefined) return problem;
      shown = [];
      this.#write(line.slice(2));
    }
    return this.#await(shown);
  }

  /** Waits until the bot has sent these texts. */
  async #await(shown: readonly string[]): Promise<string | undefined> {
    if (shown.length === 0) return undefined;
    const wanted = shown.map((line) => line.replace(ID, "$1 ID"));
    const late = Date.now() + PATIENCE_MS;
    for (;;) {
      const { sent } = this.#server;
      const output = sent
        .slice(this.#seen)
        .map(({ text }) => text.replace(ID, "$1 ID"))
        .join("\n");
      const problem = output === "" ? "the bot says nothing" : mismatch(wanted, output);
      if (problem === undefined) this.#seen = sent.length;
      if (problem === undefined) return undefined;
      if (Date.now() > late) return `${problem}\n\n${output}`;
      await moment();
    }
  }

  #write(text: string): void {
    const server = this.#server;
    const [bot] = server.bots;
    if (bot === undefined) throw new Error("there is no bot");
    const asked = server.sent
      .map((one) => /\/allow (\w+)/.exec(one.text)?.[1])
      .findLast((id) => id !== undefined);
    server.nextMessageId += 10;
    server.push(bot, {
      message: {
        message_id: server.nextMessageId,
        date: 1_790_000_000,
        chat: { id: ADA, type: "private", first_name: "Ada" },
        from: { id: ADA, is_bot: false, first_name: "Ada" },
        text: text.replace(/^(\/(?:allow|deny)) \w+/, (_, command) => `${command} ${asked}`),
      },
    });
  }
}
