// Introduces Parley on a gateway without messages: its purpose, sentences to begin with, the demo, and how to
// set it up.

import type { ComponentChildren } from "preact";
import { canEnterDemo, enterDemo, inDemo } from "./demo/scene.ts";
import { ask, has, may } from "./gateway.ts";
import { Button } from "./parts/button.tsx";
import { Examples, OFFLINE_PROVIDER } from "./parts/examples.tsx";
import { lazy } from "./parts/lazy.tsx";
import { useNews, useReading } from "./parts/reading.ts";
import "./welcome.css";

const Setup = lazy(async () => (await import("./setup/setup.tsx")).Setup);

export function Welcome({ children }: { children?: ComponentChildren }) {
  const offers = useReading("welcome", async () => {
    if (inDemo || !may("operator.write")) return undefined;
    const { unused, demo } = await ask("status");
    // Also absent if the token does not cover all sessions.
    if (unused !== true) return undefined;
    const { agents } = await ask("agents.list");
    const needsKey = agents.every(({ model }) => model.startsWith(OFFLINE_PROVIDER));
    const hasDemo = needsKey && canEnterDemo && may("operator.admin") && has("demo.start");
    return { needsKey, hasDemo: hasDemo && demo !== undefined };
  });
  useNews("sessions", offers.again);
  useNews("config", offers.again);
  const { value, busy } = offers;
  if (value === undefined) return busy ? null : children;
  return (
    <section class="welcome" aria-labelledby="welcome-title">
      <h2 id="welcome-title">Welcome to Parley</h2>
      <p>
        Parley is a gateway for AI agents: each conversation is a session, and agents can ask each other, give
        jobs to sub-agents and answer you in any of your channels.
      </p>
      <Examples />
      {value.hasDemo && (
        <div class="welcome-offer">
          <Button text="Play the demo" class="primary" onClick={enterDemo} />
          <p class="soft">
            Three agents at work: a question, jobs, and a circular wait that is refused. The demo has a
            separate store.
          </p>
        </div>
      )}
      <Setup needsModel={value.needsKey} />
    </section>
  );
}
