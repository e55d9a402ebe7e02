// The dialog that connects a chat channel: asks for the token of a bot, and tests it.

import { optional } from "../../../src/core/optional.ts";
import { after } from "../clock.ts";
import { BOTS } from "../features.ts";
import { ask } from "../gateway.ts";
import { SchemaForm } from "../inbox/form.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { say } from "../parts/notices.tsx";
import { change, literal } from "./change.ts";

/** A bot of a platform that needs only a token. */
export interface Bot {
  readonly channel: string;
  readonly title: string;
  /** The key of the token in the settings of the channel. */
  readonly key: string;
  /** How people get the token. */
  readonly step: string;
}

/** Number of tests, a second apart: the gateway applies the file a moment after it was saved. */
const TESTS = 5;
const SECOND_MS = 1_000;

async function tested(channel: string, times = TESTS): Promise<string> {
  try {
    return (await ask("channels.test", { channel })).name;
  } catch (problem) {
    if (times <= 1) throw problem;
    await new Promise<void>((resolve) => after(SECOND_MS, resolve));
    return tested(channel, times - 1);
  }
}

export function ConnectChat({ onClose }: { onClose: () => void }) {
  const choices = BOTS.map(({ channel, title }) => [channel, title] as const);
  const botOf = (chat?: string) => BOTS.find(({ channel }) => channel === chat) ?? BOTS[0];
  return (
    <Dialog title="Connect a chat" onClose={onClose}>
      <SchemaForm
        action="Connect"
        fields={({ chat }) => [
          { name: "chat", title: "Chat", type: "choice", choices },
          {
            ...{ name: "token", title: "Token of the bot", secret: true, required: true },
            ...optional({ description: botOf(chat)?.step }),
          },
        ]}
        onSubmit={async ({ chat = "", token = "" }) => {
          await change([{ path: `channels.${chat}.${botOf(chat)?.key}`, value: literal(token) }]);
          const name = await tested(chat);
          say(`${name} is connected. Write to it: the inbox then asks whether you may.`);
          onClose();
        }}
        onClose={onClose}
      />
    </Dialog>
  );
}
