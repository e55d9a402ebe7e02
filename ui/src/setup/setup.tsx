// Connects a model and a chat channel: in the introduction, and with buttons of other views.

import { useState } from "preact/hooks";
import { BOTS } from "../features.ts";
import { ask, coversAll, has, may } from "../gateway.ts";
import { Button } from "../parts/button.tsx";
import { useNews, useReading } from "../parts/reading.ts";
import { ConnectChat } from "./connect-chat.tsx";
import { ConnectModel } from "./connect-model.tsx";

const mayConnect = (): boolean =>
  may("operator.admin") && coversAll() && has("config.patch") && has("models.test");

/** A button that opens the dialog. Draws nothing for readers who may not change the settings. */
export function Connect({ what, onClose }: { what: "model" | "chat"; onClose?: () => void }) {
  const [open, setOpen] = useState(false);
  if (!mayConnect() || (what === "chat" && BOTS.length === 0)) return null;
  const close = (): void => {
    setOpen(false);
    onClose?.();
  };
  const Dialog = what === "model" ? ConnectModel : ConnectChat;
  return (
    <>
      <Button text={`Connect a ${what}`} data-act="" onClick={() => setOpen(true)} />
      {open && <Dialog onClose={close} />}
    </>
  );
}

/** `needsModel`: all agents have the offline model. */
export function Setup({ needsModel }: { needsModel: boolean }) {
  const isWithoutChat = useReading("chats", async () => {
    const { channels } = mayConnect() ? await ask("channels.status") : {};
    return channels?.every(({ kind, ok }) => kind !== "channel" || !ok);
  });
  useNews("config", isWithoutChat.again);
  const way = mayConnect() ? "connect it here" : "ask an operator for a provider's key";
  const offer = (what: "model" | "chat", words: string) => (
    <div class="welcome-offer">
      <Connect what={what} onClose={isWithoutChat.again} />
      <p class="soft">{words}</p>
    </div>
  );
  return (
    <>
      {needsModel &&
        offer(
          "model",
          `The agents answer with the offline model, which needs no key. For a real one, ${way}.`,
        )}
      {isWithoutChat.value === true &&
        offer(
          "chat",
          "Write to the agents from Telegram or Discord. " +
            "WhatsApp, Signal and iMessage are connected on the gateway's machine.",
        )}
    </>
  );
}
