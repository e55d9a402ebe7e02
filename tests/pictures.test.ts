// The pictures of docs/pictures are drawn here; each is shown by a page, and none of its words overlap.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { drawGate } from "./kit/pictures/decision.ts";
import * as flows from "./kit/pictures/flows.ts";
import * as policy from "./kit/pictures/policy.ts";
import { drawSequence } from "./kit/pictures/sequence.ts";
import { drawStates } from "./kit/pictures/states.ts";
import type { Area, Picture } from "./kit/pictures/svg.ts";

const DOCS = fileURLToPath(new URL("../docs/", import.meta.url));

const PICTURES: Readonly<Record<string, Picture>> = {
  "run-states": drawStates(flows.RUN_STATES),
  "delivery-states": drawStates(flows.DELIVERY_STATES),
  waits: drawStates(flows.WAITS),
  send: drawSequence(flows.SEND),
  spawn: drawSequence(flows.SPAWN),
  inbox: drawSequence(flows.INBOX),
  "gate-token": drawGate(policy.TOKEN),
  "gate-visibility": drawGate(policy.VISIBILITY),
  "gate-tools": drawGate(policy.TOOLS),
  "gate-sandbox": drawGate(policy.SANDBOX),
  "gate-send-policy": drawGate(policy.SEND_POLICY),
  "gate-sending": drawGate(policy.SENDING),
  "gate-spawning": drawGate(policy.SPAWNING),
  "gate-channel": drawGate(policy.CHANNEL),
};

const overlap = (a: Area, b: Area): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

test.each(Object.entries(PICTURES))(
  "docs/pictures/%s.svg is drawn so (--update writes it)",
  async (name, { svg }) => {
    await expect(svg).toMatchFileSnapshot(`../docs/pictures/${name}.svg`);
  },
);

test("no words overlap others or stand on a line, and none leave their picture", () => {
  for (const [name, { texts, lines, width, height }] of Object.entries(PICTURES)) {
    const out = texts.filter(
      ({ x, y, ...text }) => x < 0 || y < 0 || x + text.width > width || y + text.height > height,
    );
    expect({ name, out }).toEqual({ name, out: [] });
    const clashes = texts.flatMap((one, at) =>
      texts
        .slice(at + 1)
        .filter((other) => overlap(one, other))
        .map((other) => [one.text, other.text]),
    );
    expect({ name, clashes }).toEqual({ name, clashes: [] });
    const crossed = texts.filter((text) => lines.some((line) => overlap(text, line)));
    expect({ name, crossed }).toEqual({ name, crossed: [] });
  }
});

test("every picture is shown by a page, with words for those who don't see it", () => {
  const pages = readdirSync(DOCS).filter((name) => name.endsWith(".md"));
  const text = pages.map((page) => readFileSync(DOCS + page, "utf8")).join("\n");
  const shownOf = (folder: string): (string | undefined)[] => {
    const shown = text.matchAll(new RegExp(`!\\[[^\\]]+\\]\\(${folder}/([\\w-]+)\\.svg\\)`, "g"));
    return [...new Set([...shown].map(([, name]) => name))].sort();
  };
  expect(shownOf("pictures")).toEqual(Object.keys(PICTURES).sort());
  const plots = readdirSync(`${DOCS}plots`).map((name) => name.replace(/\.svg$/, ""));
  expect(shownOf("plots")).toEqual(plots.sort());
});
