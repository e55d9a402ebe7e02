// The part of the introduction that sets a gateway up: a model and a chat channel.

import { useState } from "preact/hooks";
import { ask, coversAll, has, may } from "../gateway.ts";
import { useNews, useReading } from "../parts/reading.ts";
import { ConnectChat } from "./connect-chat.tsx";
import { ConnectModel } from "./connect-model.tsx";

/** Returns whether no chat channel works yet. */
async function isWithoutChat(): Promise<boolean> {
  const { channels } = await ask("channels.status");
  return channels.every(({ kind, ok }) => kind !== "channel" || !ok);
}

/** `needsModel`: all agents have the offline model. */
export function Setup({ needsModel }: { needsModel: boolean }) {
  const [open, setOpen] = useState<"model" | "chat">();
  const mayConnect = may("operator.admin") && coversAll() && has("config.patch") && has("models.test");
  const chats = useReading("chats", async () => mayConnect && (await isWithoutChat()));
  useNews("config", chats.again);
  const close = (): void => {
    setOpen(undefined);
    chats.again();
  };
  return (
    <>
      {needsModel && (
        <div class="welcome-offer">
          {mayConnect && (
            <button type="button" onClick={() => setOpen("model")}>
              Connect a model
            </button>
          )}
          <p class="soft">
            The agents answer with the offline model, which needs no key. For a real one, set{" "}
            <code>ANTHROPIC_API_KEY</code>, <code>OPENAI_API_KEY</code> or <code>GEMINI_API_KEY</code> and
            start the gateway again{mayConnect && ", or connect it here"}.
          </p>
        </div>
      )}
      {chats.value === true && (
        <div class="welcome-offer">
          <button type="button" onClick={() => setOpen("chat")}>
            Connect a chat
          </button>
          <p class="soft">
            Write to the agents from Telegram or Discord. <code>parley channels add</code> connects WhatsApp,
            Signal and iMessage; <code>parley service install</code> starts the gateway with the machine.
          </p>
        </div>
      )}
      {open === "model" && <ConnectModel onClose={close} />}
      {open === "chat" && <ConnectChat onClose={close} />}
    </>
  );
}
