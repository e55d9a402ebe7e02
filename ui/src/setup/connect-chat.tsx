// The dialog that connects a chat channel: asks for the token of a bot, tests it, and then writes it to
// the configuration file.

import { optional } from "../../../src/core/optional.ts";
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
          const key = botOf(chat)?.key ?? "";
          const value = literal(token);
          // Nothing is written before the platform has accepted the token.
          const { name } = await ask("channels.test", { channel: chat, values: { [key]: value } });
          await change([{ path: `channels.${chat}.${key}`, value }]);
          say(`${name} is connected. Write to it: the inbox then asks whether you may.`);
          onClose();
        }}
        onClose={onClose}
      />
    </Dialog>
  );
}
