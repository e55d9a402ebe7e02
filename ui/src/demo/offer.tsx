// Offers the demo if the gateway was never used and has no real model.

import { useState } from "preact/hooks";
import { ask, has, may } from "../gateway.ts";
import { useNews, useReading } from "../parts/reading.ts";
import { route } from "../route.ts";
import { canEnterDemo, enterDemo } from "./scene.ts";
import "./demo.css";

const OFFLINE_PROVIDER = "offline/";

async function isWelcome(): Promise<boolean> {
  if (!canEnterDemo || !may("operator.admin") || !has("demo.start")) return false;
  const { unused, demo } = await ask("status");
  if (unused !== true || demo === undefined) return false;
  const { agents } = await ask("agents.list");
  return agents.every(({ model }) => model.startsWith(OFFLINE_PROVIDER));
}

export function DemoOffer() {
  const [declined, setDeclined] = useState(false);
  const welcome = useReading("demo", isWelcome);
  useNews("sessions", welcome.again);
  const at = route.value;
  const isFirst =
    at.view === "inbox" || at.view === "flow" || (at.view === "sessions" && at.key === undefined);
  if (declined || !isFirst || welcome.value !== true) return null;
  return (
    <section class="offer card" aria-labelledby="offer-title">
      <h2 id="offer-title">No messages yet</h2>
      <p>
        Watch three agents at work: one asks another and the two converse, sub-agents get jobs and return
        results, a circular wait is refused. The demo needs no key and no network, and has a separate store.
      </p>
      <div class="bar">
        <button type="button" class="primary" onClick={enterDemo}>
          Play the demo
        </button>
        <button type="button" onClick={() => setDeclined(true)}>
          Not now
        </button>
      </div>
    </section>
  );
}
