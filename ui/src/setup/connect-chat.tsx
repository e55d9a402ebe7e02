// The dialog that connects a chat channel: asks for the token of a bot, and tests it.

import { useState } from "preact/hooks";
import { after } from "../clock.ts";
import { BOTS } from "../features.ts";
import { ask } from "../gateway.ts";
import { Dialog, Form } from "../parts/dialog.tsx";
import { say } from "../parts/notices.tsx";
import { Select } from "../parts/select.tsx";
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
  const [chat, setChat] = useState(BOTS[0]?.channel ?? "");
  const { key, step } = BOTS.find(({ channel }) => channel === chat) ?? {};
  const [token, setToken] = useState("");
  const connect = async (): Promise<void> => {
    await change([{ path: `channels.${chat}.${key}`, value: literal(token) }]);
    const name = await tested(chat);
    say(`${name} is connected. Write to it: the inbox then asks whether you may.`);
    onClose();
  };
  return (
    <Dialog title="Connect a chat" onClose={onClose}>
      <Form action="Connect" onSubmit={connect} onClose={onClose}>
        <label>
          Chat
          <Select
            value={chat}
            options={BOTS.map(({ channel, title }) => [channel, title])}
            onPick={setChat}
          />
        </label>
        <p class="soft">{step}</p>
        <label>
          Token of the bot
          <input
            type="password"
            autocomplete="off"
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
      </Form>
    </Dialog>
  );
}
