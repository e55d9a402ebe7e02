// The banner above the demo: its steps, the next step, and a button that returns to the reader's own gateway.

import { useEffect } from "preact/hooks";
import { epoch } from "../gateway.ts";
import { Button } from "../parts/button.tsx";
import { leaveDemo } from "./scene.ts";
import "./demo.css";
import { ACTS, enterTour, playAct, playAgain, tour } from "./tour.ts";

function Next() {
  const { act, playing, played } = tour.value;
  const next = ACTS[played];
  if (playing) {
    return <Button text="Playing…" class="primary" disabled />;
  }
  return next === undefined || act !== played - 1 ? (
    <Button text="Play again" onClick={playAgain} />
  ) : (
    <Button text={`Next: ${next.title.toLowerCase()}`} class="primary" onClick={() => playAct(played)} />
  );
}

export function DemoBanner() {
  const { act, played } = tour.value;
  const shown = ACTS[act];
  const said = shown?.lines.at(-1);
  // If the gateway was restarted, its demo is new, and no act of it was played yet.
  const connection = epoch.value;
  useEffect(() => void enterTour(), [connection]);
  return (
    <aside class="demo" aria-label="Demo">
      <strong>This is a demo with a separate store</strong>
      <ol class="line demo-acts" aria-label="Steps of the demo">
        {ACTS.map(({ title }, at) => (
          <li key={title} class={at < played ? "played" : ""} aria-current={at === act ? "step" : undefined}>
            {title}
          </li>
        ))}
      </ol>
      <div class="bar demo-ways">
        <Next />
        <Button text="Back to your gateway" onClick={leaveDemo} />
      </div>
      {shown !== undefined && said !== undefined && (
        <p class="demo-caption" role="status">
          <span class="demo-said">
            you → {said.agent}: <q>{said.text}</q>
          </span>{" "}
          {shown.caption}
        </p>
      )}
    </aside>
  );
}
