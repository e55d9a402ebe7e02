// The views of the web page, and the messages that fill them. Used for screenshots, and by tests that check
// every view.

import type { Page } from "playwright-core";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import type { ParamsOf } from "../../src/contract/methods.ts";

/** A configuration with which every view shows content. */
export const STORY_CONFIG = {
  agents: {
    list: [
      { id: "main", default: true, name: "Main" },
      { id: "research", name: "Research", instructions: "You find facts, and name their sources. Be brief." },
      {
        id: "ops",
        name: "Operations",
        tools: { deny: ["fetch", "write", "edit"] },
        budget: { dailyCost: 5 },
      },
    ],
  },
  tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true } },
};

/** Ids that the messages have created. Addresses of views contain them. */
interface StoryFacts {
  /** Key of a session that contains many kinds of text. */
  readonly richKey: string;
  /** Id of a chain with a refused step. */
  readonly chainId: string;
}

export interface PageView {
  /** The name of the screenshot file. */
  readonly name: string;
  /** Behind "#/". */
  readonly at: string | ((facts: StoryFacts) => string);
  /** A selector that matches when the view is ready. Default: any content. */
  readonly shows?: string;
  /** Performs the actions by which a reader reaches this state of the view. */
  enter?(page: Page): Promise<void>;
  /** True if the view shows a gateway without messages. */
  readonly unused?: boolean;
  /** True if the view is opened before signing in. */
  readonly signedOut?: boolean;
  /** The view exists only if the gateway has this method. */
  readonly needs?: string;
}

const MAIN_KEY = "agent:main:main";
const RESEARCH = encodeURIComponent("agent:research:main");
const MAIN = encodeURIComponent(MAIN_KEY);

export const PAGE_VIEWS: readonly PageView[] = [
  { name: "sign-in", at: "", signedOut: true, shows: "form" },
  { name: "welcome", at: "inbox", unused: true, shows: ".welcome" },
  {
    name: "demo",
    at: "inbox",
    unused: true,
    shows: ".welcome",
    async enter(page) {
      await page.getByRole("button", { name: "Play the demo" }).click();
      const next = page.getByRole("button", { name: /^(Next:|Play again)/ });
      // A demo that was played before opens at its end.
      while ((await next.innerText()) !== "Play again") await next.click();
    },
  },
  { name: "inbox", at: "inbox", shows: ".inbox-row", needs: "attention.list" },
  { name: "sessions", at: "sessions" },
  { name: "conversation", at: `sessions/${MAIN}`, shows: ".entry" },
  {
    ...{ name: "jobs", at: `sessions/${MAIN}`, shows: ".jobs" },
    enter: (page) => page.locator(".jobs").first().scrollIntoViewIfNeeded(),
  },
  { name: "rich-text", at: ({ richKey }) => `sessions/${encodeURIComponent(richKey)}` },
  {
    ...{ name: "commands", at: `sessions/${RESEARCH}`, shows: ".entry" },
    enter: (page) => page.getByRole("textbox", { name: "Message" }).pressSequentially("/"),
  },
  {
    name: "palette",
    at: "sessions",
    async enter(page) {
      await page.keyboard.press("Control+k");
      await page.getByRole("option", { name: /^Main main/ }).waitFor();
    },
  },
  {
    name: "keys",
    at: "inbox",
    async enter(page) {
      await page.keyboard.press("?");
      await page.getByRole("heading", { name: "Keys" }).waitFor();
    },
  },
  { name: "agents", at: "agents", needs: "agents.describe", shows: ".agent-row" },
  { name: "agent", at: "agents/main", needs: "agents.describe", shows: ".agent-form" },
  { name: "flow", at: "flow" },
  { name: "chain", at: ({ chainId }) => `flow/${chainId}` },
  {
    ...{ name: "waterfall", at: ({ chainId }: StoryFacts) => `flow/${chainId}` },
    async enter(page) {
      await page.getByRole("button", { name: "Waterfall" }).click();
      await page.locator(".waterfall-bars .bar-of").first().waitFor();
    },
  },
  {
    ...{ name: "replay", at: ({ chainId }: StoryFacts) => `flow/${chainId}/replay` },
    ...{ needs: "chains.replay", shows: ".replay-form" },
  },
  {
    ...{ name: "compare", at: ({ chainId }: StoryFacts) => `flow/${chainId}/compare` },
    needs: "chains.diff",
    async enter(page) {
      await page.getByLabel("Compare with").selectOption({ index: 1 });
      await page.locator(".columns").waitFor();
    },
  },
  { name: "status", at: "operations/status" },
  { name: "runs", at: "operations/runs", needs: "runs.list" },
  { name: "usage", at: "operations/usage", shows: ".usage-table tbody tr" },
  { name: "tokens", at: "operations/tokens", needs: "tokens.list", shows: ".tokens-note" },
  { name: "nodes", at: "operations/nodes", needs: "node.pair.list" },
  { name: "deliveries", at: "operations/deliveries", needs: "deliveries.list" },
  { name: "channels", at: "operations/channels", needs: "channels.status" },
  { name: "schedules", at: "operations/schedules", needs: "cron.list", shows: "li.job" },
  { name: "rights", at: `operations/rights/${MAIN}%0A${RESEARCH}`, shows: "[aria-label=Answers] li" },
  { name: "permissions", at: "operations/permissions", needs: "permissions.list" },
  { name: "servers", at: "operations/servers", needs: "servers.list", shows: ".empty, .out-rows li" },
  {
    ...{ name: "backups", at: "operations/backups", needs: "store.backups" },
    async enter(page) {
      await page.getByRole("button", { name: "Back up now" }).click();
      await page.getByText("Last backup: just now").waitFor();
    },
  },
  {
    ...{ name: "doctor", at: "operations/doctor", needs: "doctor" },
    async enter(page) {
      await page.getByRole("button", { name: "Run checks" }).click();
      await page.getByText("In order").waitFor();
    },
  },
  { name: "log", at: "operations/log", needs: "logs.tail", shows: ".log-line, .log .empty" },
  {
    ...{ name: "configuration", at: "operations/configuration", needs: "config.check" },
    shows: ".config-verdict, .config .failed",
  },
];

/** Opens a view, and waits until its content is shown. */
export async function showView(page: Page, http: string, view: PageView, facts?: StoryFacts): Promise<void> {
  const at = typeof view.at === "string" ? view.at : view.at(facts ?? { richKey: "", chainId: "" });
  if (view.signedOut !== true) await page.goto(`${http}/#/${at}`);
  // The previous view stays visible until the next frame is drawn.
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  await page
    .locator(view.shows ?? "#view > *")
    .first()
    .waitFor();
  await view.enter?.(page);
  await page.locator("main:not(:has(.loading))").waitFor();
}

/** Messages to which the offline model responds with tool calls, in the order in which they are sent. */
const STORY: readonly { readonly to: string; readonly text: string }[] = [
  { to: "agent:research:main", text: "say I look after research" },
  { to: "agent:main:main", text: "ask research: what should we check before a release?" },
  { to: "agent:main:main", text: "spawn 3 jobs: wait 1 second, then say part {n} is done" },
  { to: "agent:main:main", text: "ask research: ask ops: ask main: may we ship?" },
  { to: "agent:ops:main", text: "list sessions" },
  { to: "agent:ops:main", text: "say The disk is nearly full. Shall I delete the backups of last year?" },
];

const RICH = `say ## Before a release

1. **Tests** pass on both stores: \`npm test\`
2. The *backup* of last night opens

| step | who | done |
|---|---|---|
| notes | research | yes |
| backup | ops | not yet |

\`\`\`sh
npx parley-gateway store backup before-the-release.db
\`\`\`

> Nobody deploys on a Friday. [Why](https://example.com/friday)`;

/** Jobs for the view "Schedules". The first one is run once. */
const JOBS: readonly ParamsOf<"cron.add">[] = [
  {
    name: "Morning report",
    message: "say nothing new since yesterday",
    schedule: { kind: "cron", expr: "30 7 * * 1-5", tz: "Europe/Berlin" },
    deliver: { to: "main" },
  },
  {
    name: "Is the site up?",
    message: "say it is",
    schedule: { kind: "every", everyMs: 900_000 },
    agentId: "ops",
  },
];

const ROOMS = ["release notes", "on-call handover", "price list, second draft", "where the backups are"];
const QUIET_TRIES_MAX = 300;
const QUIET_EVERY_MS = 100;

/** Waits until all runs and deliveries have ended. */
async function untilQuiet(client: GatewayClient): Promise<void> {
  for (let tries = 0; tries < QUIET_TRIES_MAX; tries++) {
    const { lanes, deliveries } = await client.request("health");
    const busy = (lanes?.running ?? 0) + (lanes?.waiting ?? 0) + (lanes?.queued ?? 0);
    if (busy + (deliveries?.pending ?? 0) === 0) return;
    await new Promise((resolve) => setTimeout(resolve, QUIET_EVERY_MS));
  }
  throw new Error("the story did not come to its end");
}

/** Sends all messages that fill the views, and waits until their work has ended. */
export async function tellStory(client: GatewayClient): Promise<StoryFacts> {
  for (const label of ROOMS.slice(1)) {
    const { key } = await client.request("sessions.create", { label });
    await client.request("chat.send", { sessionKey: key, message: `say we collect what is known: ${label}` });
  }
  for (const { to, text } of STORY) {
    await client.request("chat.send", { sessionKey: to, message: text });
    await untilQuiet(client);
  }
  const rich = await client.request("sessions.create", { label: ROOMS[0] ?? "" });
  await client.request("chat.send", { sessionKey: rich.key, message: RICH });
  for (const job of JOBS) await client.request("cron.add", job);
  const [first] = (await client.request("cron.list", { limit: 1 })).jobs;
  if (first !== undefined) await client.request("cron.run", { id: first.id });
  await untilQuiet(client);
  const { key } = await client.request("sessions.create", { label: "nightly build" });
  // It still runs when the views are shown.
  await client.request("chat.send", { sessionKey: key, message: "wait 3600 seconds, then say it is built" });
  const { chains } = await client.request("chains.list", {});
  const refused = chains.find((chain) => chain.refused > 0) ?? chains[0];
  return { richKey: rich.key, chainId: refused?.chainId ?? "" };
}
