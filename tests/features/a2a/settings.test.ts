// The settings of A2A: exposed agents, and agents elsewhere.

import { expect, test } from "vitest";
import { useConfigHome } from "../../kit/process/config-home.ts";

const home = useConfigHome();
const agents = (more: string) => `{ agents: { list: [{ id: "main" }, { id: "far", ${more} }] } }`;
const CARD = "https://agents.example/a2a/research";

test("an exposed agent is named by its id in any case, once", () => {
  const { settings } = home().good(`{
    agents: { list: [{ id: "main" }, { id: "research" }] },
    a2a: { expose: ["Research", "research"], descriptions: { Research: " Reads papers. " } },
  }`);
  expect(settings.a2a).toEqual({
    ...{ expose: ["research"], notifyHosts: [] },
    descriptions: { research: "Reads papers." },
  });
});

test("an agent elsewhere has a card, and a key or the permission to go without", () => {
  const runtime = `runtime: { type: "a2a", card: "${CARD}", key: "abc", token: "a-token" }`;
  const { settings } = home().good(agents(runtime));
  expect(settings.agents[1]).toMatchObject({
    model: "a2a/far",
    runtime: { type: "a2a", card: CARD, key: "abc", token: "a-token", allowUnsigned: false },
  });
  home().good(agents(`runtime: { type: "a2a", card: "${CARD}", allowUnsigned: true }`));
});

test.each([
  [`runtime: { type: "a2a", card: "${CARD}" }`, /runtime\.key: is missing.*allowUnsigned/],
  [`runtime: { type: "a2a", key: "abc" }`, /runtime\.card: is missing/],
  [`runtime: { type: "a2a", card: "ftp://x/", key: "abc" }`, /runtime\.card/],
  [`runtime: { card: "${CARD}" }`, /runtime\.card: is valid only with runtime\.type "a2a"/],
  [`runtime: { type: "a2a", card: "${CARD}", key: "abc", command: ["x"] }`, /command: is valid only with/],
  [`model: "x/y", runtime: { type: "a2a", card: "${CARD}", key: "abc" }`, /model: an A2A agent chooses/],
  [`sandbox: { mode: "all" }, runtime: { type: "a2a", card: "${CARD}", key: "abc" }`, /sandbox\.mode/],
])("the agent { %s } is refused by name", (more, problem) => {
  expect(home().problems(agents(more)).join("\n")).toMatch(problem);
});

test("descriptions and exposed names that are no agents are refused by name", () => {
  const text = home().problems(`{ a2a: { expose: ["reserch"], descriptions: { nobody: "x" } } }`).join("\n");
  expect(text).toMatch(/a2a\.expose\[0\]: there is no agent "reserch"/);
  expect(text).toMatch(/a2a\.descriptions\.nobody: there is no agent "nobody"/);
});
