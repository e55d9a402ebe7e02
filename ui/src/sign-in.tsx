// Owns the sign-in: with a token from the link that the gateway prints, or with a token that the reader
// pastes.

import { useState } from "preact/hooks";
import { safeText } from "../../src/core/text/safe-text.ts";
import { signIn, signOut, stage } from "./gateway.ts";
import { Button } from "./parts/button.tsx";
import { tokenIn } from "./token.ts";

export function SignIn() {
  const [text, setText] = useState("");
  const { value } = stage;
  const problem = value.kind === "signed-in" ? undefined : value.problem;
  const connecting = value.kind === "connecting";
  const submit = (event: Event): void => {
    event.preventDefault();
    const token = tokenIn(text);
    if (token !== "") void signIn(token);
  };
  return (
    <main class="sign-in">
      <form onSubmit={submit} aria-busy={connecting}>
        <h1 class="row">
          <img src="/icon.svg" alt="" width="28" height="28" /> Parley
        </h1>
        <p>
          Open the link that the gateway prints when it starts in a terminal, or paste it or its token here;
          the token is kept in this tab only. <code>npx parley-gateway link</code> prints the link again.
        </p>
        <label>
          Token or link
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <div class="actions">
          {connecting && <Button text="Stop" onClick={signOut} />}
          <button type="submit" class="primary" disabled={connecting}>
            {connecting ? "Connecting…" : "Sign in"}
          </button>
        </div>
        <p role="status" class="problem">
          {problem !== undefined && <bdi>{safeText(problem)}</bdi>}
          {problem !== undefined && connecting && " Retrying."}
        </p>
      </form>
    </main>
  );
}
