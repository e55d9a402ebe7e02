// Owns what the palette offers besides sessions: the views, the agents, the actions of the page, and those of
// the view.
// An action of the view is a visible button with `data-act`, so the palette offers what the view offers. The
// attribute has a text for the palette if the button's name is too short outside of its place.

import { agents } from "../agents/known.ts";
import { canEnterDemo, enterDemo, inDemo, leaveDemo } from "../demo/scene.ts";
import { has, may, signOut } from "../gateway.ts";
import { visible } from "../keys/page.ts";
import { offeredTabs } from "../operations/tabs.ts";
import { overlay, searchMessages } from "../overlay.ts";
import { go, type Route } from "../route.ts";
import { THEME_WORDS, theme, turnTheme } from "../theme.ts";
import { VIEW_TITLES } from "../views.ts";

export interface Entry {
  /** Stays the same when the entries are read again. */
  readonly id: string;
  readonly title: string;
  /** Text beside the title. */
  readonly about: string;
  /** Other words by which people look for it. */
  readonly words?: string | undefined;
  readonly act: () => void;
}

/** Navigates to a route, and moves the focus there. */
export function visit(to: Route): void {
  go(to);
  document.getElementById("view")?.focus();
}

type Unnamed = Omit<Entry, "id">;

function ofView(): Unnamed[] {
  return visible('[data-act]:not(:disabled, [aria-disabled="true"])').map((button) => ({
    title: button.dataset.act || button.ariaLabel || button.innerText,
    about: "this view",
    act: () => button.click(),
  }));
}

const open = (what: typeof overlay.value) => (): void => {
  overlay.value = what;
};

function ofPage(): Unnamed[] {
  const mayPlay = canEnterDemo && may("operator.admin") && has("demo.start");
  const offered: [boolean, string, () => void][] = [
    [may("operator.write") && has("sessions.create"), "New session", open("new-session")],
    [may("operator.write"), "Ask an agent", open("dispatch")],
    [has("sessions.search"), "Search messages", () => searchMessages()],
    [true, "Keys", open("keys")],
    [!inDemo && mayPlay, "Play the demo", enterDemo],
    [inDemo, "Leave the demo", leaveDemo],
    ...Object.entries(THEME_WORDS).map(([name, words]): [boolean, string, () => void] => [
      name !== theme.value,
      `Colours: ${words}`,
      () => turnTheme(name as typeof theme.value),
    ]),
    [true, "Sign out", signOut],
  ];
  return offered.filter(([is]) => is).map(([, title, act]) => ({ title, about: "action", act }));
}

/** Words that people type for a view or a tab, by its title. */
const WORDS: Readonly<Record<string, string>> = {
  Inbox: "approve allow deny questions failures",
  Agents: "model instructions budget",
  Flow: "chains waterfall sequence steps",
  Runs: "stop running",
  Usage: "cost budget tokens money today",
  Permissions: "approvals allowed commands",
  Configuration: "settings",
  Servers: "mcp tools",
  Channels: "telegram discord slack whatsapp people",
};

function ofViews(): Unnamed[] {
  const views = Object.entries(VIEW_TITLES).map(([view, title]) => ({
    ...{ title, about: "view", words: WORDS[title] },
    act: () => visit({ view } as Route),
  }));
  const tabs = offeredTabs().map(({ title, name }) => ({
    ...{ title, about: VIEW_TITLES.operations, words: WORDS[title] },
    act: () => visit({ view: "operations", tab: name }),
  }));
  const listed = (agents.value?.agents ?? []).map(({ id, name = id }) => ({
    ...{ title: name, about: "agent", words: `${id} model instructions budget` },
    act: () => visit({ view: "agents", agentId: id }),
  }));
  return [...views, ...tabs, ...listed];
}

export function entries(): Entry[] {
  const counts = new Map<string, number>();
  return [...ofView(), ...ofViews(), ...ofPage()].map((entry) => {
    const name = `${entry.about} ${entry.title}`;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return { ...entry, id: `${name} ${count}` };
  });
}
