// Labels that peers write: hostile and missing ones.

import { expect, test } from "vitest";
import { countedLabels } from "../../src/core/rules/labels/labels.ts";
import { readPeerLabels, writePeerLabels } from "../../src/core/rules/labels/peer-labels.ts";
import { settingsWith } from "../tools/app.ts";

const sources = (given: unknown) => {
  const { outside = [], private: hidden = [] } = readPeerLabels("acme", given, 1);
  return [outside.map(({ source }) => source), hidden.map(({ source }) => source)];
};

test.each([
  ["none", undefined, [["peer acme: unlabelled"], []]],
  ["no object", ["web"], [["peer acme: unlabelled"], []]],
  ["empty ones", {}, [[], []]],
  ["one kind of each", { outside: ["web"], private: ["file"] }, [["peer acme: web"], ["peer acme: file"]]],
  [
    "kinds that are no words",
    { outside: ["web, peer acme", 3, "mcp"], private: "all" },
    [["peer acme: mcp", "peer acme: unlabelled"], ["peer acme: unlabelled"]],
  ],
])("the labels of a peer: %s", (_, given, expected) => {
  expect(sources(given)).toEqual(expected);
});

test("a peer that sends a thousand kinds is noted with twenty", () => {
  const kinds = Array.from({ length: 1_000 }, (_, at) => `kind${at}`);
  expect(sources({ outside: kinds })[0]).toHaveLength(20);
});

test("labels.trust of a peer trusts its owner's words, not what it read from outside or without labels", () => {
  const settings = settingsWith({ labels: { trust: ["peer acme"] } });
  const { outside } = countedLabels(settings, {
    outside: [
      { source: "peer acme", since: 1 },
      ...(readPeerLabels("acme", { outside: ["web"] }, 1).outside ?? []),
      ...(readPeerLabels("acme", undefined, 1).outside ?? []),
    ],
  });
  expect(outside?.map(({ source }) => source)).toEqual(["peer acme: web", "peer acme: unlabelled"]);
});

test("a peer learns the kinds of sources, no name, and nothing about what it wrote itself", () => {
  const read = ["web secret.example", "peer acme", "peer acme: web", "peer other: mcp"];
  const labels = { outside: read.map((source) => ({ source, since: 1 })) };
  expect(writePeerLabels("acme", labels)).toEqual({ outside: ["peer", "web"], private: [] });
});
