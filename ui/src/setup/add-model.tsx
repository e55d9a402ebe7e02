// The part of the introduction for a gateway without a model: how to connect one.

import { useState } from "preact/hooks";
import { coversAll, has, may } from "../gateway.ts";
import { ConnectModel } from "./connect-model.tsx";

export function AddModel() {
  const [isOpen, setOpen] = useState(false);
  const mayConnect = may("operator.admin") && coversAll() && has("config.patch") && has("models.test");
  return (
    <div class="welcome-offer">
      {mayConnect && (
        <button type="button" onClick={() => setOpen(true)}>
          Connect a model
        </button>
      )}
      <p class="soft">
        The agents answer with the offline model, which needs no key. For a real one, set{" "}
        <code>ANTHROPIC_API_KEY</code>, <code>OPENAI_API_KEY</code> or <code>GEMINI_API_KEY</code> and start
        the gateway again{mayConnect && ", or connect it here"}.
      </p>
      {isOpen && <ConnectModel onClose={() => setOpen(false)} />}
    </div>
  );
}
