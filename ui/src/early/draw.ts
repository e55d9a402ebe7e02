// Draws the first rows before the scripts and the other styles of the page have arrived.
// ED1: texts become text nodes only, made safe.
// ED2: everything is where the page draws it (sessions/row.tsx, inbox/row.tsx), so nothing moves when the
//      page takes its place. Links already work: the page opens the address that they have set. Buttons are
//      disabled.

import type { PayloadOf } from "../../../src/contract/client/web.ts";
import type { AttentionGroupRows, AttentionItem } from "../../../src/contract/methods/attention.ts";
import { GROUP_TITLES } from "../../../src/core/rules/attention/groups.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { type AgentList, agentNameIn, faceIn, markOf as faceMark, withAgentName } from "../agents/face.ts";
import { deedsForAll, type Entry, entriesOf, namesIn } from "../inbox/causes.ts";
import { CALM, DEED_WORDS, FAILED_ABOUT, markOf, SHOWN, styleOf, summaryOf, toneOf } from "../inbox/marks.ts";
import { storedSnoozes } from "../inbox/stored-snoozes.ts";
import { age, failureWords } from "../parts/format.ts";
import { factsOf, ROW_HEIGHT } from "../sessions/facts.ts";
import { rowName } from "../sessions/own-name.ts";
import { TONES } from "../styles/tones.ts";
import { COUNT_MAX, VIEW_TITLES } from "../views.ts";

/** The answer to the first request (src/gateway/page/first.ts). */
export interface First {
  readonly script?: string;
  readonly sessions: PayloadOf<"sessions.list">;
  readonly attention: PayloadOf<"attention.list">;
  readonly agents: AgentList;
}

type Part = Node | string | false;

function make(
  tag: string,
  style: string,
  parts: readonly Part[] = [],
  attributes: Readonly<Record<string, string>> = {},
): HTMLElement {
  const made = document.createElement(tag);
  made.className = style;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...parts.filter((part) => part !== false));
  return made;
}

/** Shows a text of others on one line. */
const drawName = (text: string): HTMLElement => make("bdi", "name", [safeLine(text)]);

const linkTo = (style: string, key: string, text: string): HTMLElement =>
  make("a", style, [drawName(text)], { href: `#/sessions/${encodeURIComponent(key)}` });

function buttonOf(style: string, text: string, attributes = {}): HTMLElement {
  return make("button", style, [text], { disabled: "", ...attributes });
}

let agents: AgentList | undefined;

function mark(id: string): Part {
  if (id === "") return false;
  const { class: name, ...attributes } = faceMark(faceIn(agents, id));
  return make("span", name, [], attributes);
}

function rowOf(row: First["sessions"]["sessions"][number], now: number): HTMLElement {
  const { key, agentId, failure, state, jobs, children = 0, updatedAt } = row;
  const name = withAgentName(agents, key, rowName(row));
  const doing = failure === undefined ? state : "failed";
  const words = failure === undefined ? state : failureWords(failure, now);
  const made = make(
    "div",
    "session-row in-tree",
    [
      children > 0
        ? buttonOf("plain session-twist", "▸", { "aria-label": "Open" })
        : make("span", "session-twist"),
      mark(agentId),
      make("div", "session-words", [
        make("div", "row", [
          make("span", "session-name", [linkTo("session-link", key, name)]),
          make("time", "session-age number end soft small", [age(updatedAt, now)]),
        ]),
        make("div", "row session-about soft small", [
          (doing !== "idle" || jobs === undefined) &&
            make("span", failure === undefined ? "" : "session-failed", [
              make("span", `state tone-${TONES[doing]}`, [make("span", "dot"), drawName(words)]),
            ]),
          failure === undefined &&
            jobs === undefined &&
            make("span", "session-facts cut", [drawName(factsOf(row, name, agentNameIn(agents, agentId)))]),
        ]),
      ]),
    ],
    { role: "listitem" },
  );
  made.style.height = `${ROW_HEIGHT}px`;
  made.style.setProperty("--depth", "0");
  return made;
}

const itemName = ({ sessionKey, label, title = "" }: AttentionItem): string =>
  sessionKey === undefined ? title : label || withAgentName(agents, sessionKey, rowName({ key: sessionKey }));

function entryRow({ items }: Entry, now: number): HTMLElement {
  const [item] = items;
  const { sessionKey, agentId = "", since, actions } = item;
  const summary = summaryOf(item);
  const isOne = items.length === 1;
  const name = isOne ? itemName(item) : summary;
  const below = isOne ? summary : namesIn(items.map(itemName));
  const words = isOne
    ? actions.map((action) => buttonOf(styleOf(action), DEED_WORDS[action]))
    : deedsForAll(items).map((deed) => buttonOf(styleOf(deed), `${DEED_WORDS[deed]} all`));
  return make("li", `inbox-row ${isOne ? "" : "inbox-bundle "}tone-${toneOf(item)}`, [
    make("div", "inbox-head", [
      make("span", "row inbox-mark", [make("span", "chip", [markOf(item)])]),
      make("p", "line", [
        isOne && mark(agentId),
        isOne && sessionKey !== undefined ? linkTo("inbox-link", sessionKey, name) : drawName(name),
        !isOne && make("span", "soft", [`×${items.length}`]),
      ]),
      make("time", "number soft small", [age(since, now)]),
      make("div", "row inbox-actions", [
        ...words,
        buttonOf("quiet inbox-more", "▾", { "aria-label": "Peek" }),
      ]),
    ]),
    below !== name && make("p", "cut inbox-summary", [drawName(below)]),
  ]);
}

function groupOf({ group, more, count, items }: AttentionGroupRows, now: number): Part {
  const rows = entriesOf(items)
    .slice(0, SHOWN[group])
    .map((entry) => entryRow(entry, now));
  return (
    (count > 0 || group === "needs_you") &&
    make("section", `stack inbox-${group}`, [
      make("div", "row inbox-title", [
        make("h2", "row", [
          `${GROUP_TITLES[group]} `,
          make("span", group === "needs_you" ? "chip tone-busy" : "soft", [`${count}${more ? "+" : ""}`]),
        ]),
      ]),
      group === "failed" && make("p", "soft", [FAILED_ABOUT]),
      count > 0 ? make("ul", "inbox-rows rows card", rows) : make("p", "soft", [CALM]),
    ])
  );
}

function headOf(view: string, needs: number): HTMLElement {
  const count =
    needs > 0 &&
    make("span", "nav-count", [
      needs > COUNT_MAX ? `${COUNT_MAX}+` : String(needs),
      make("span", "visually-hidden", [" need you"]),
    ]);
  const links = Object.entries(VIEW_TITLES).map(([name, title]) => {
    const current = name === view ? { "aria-current": "page" } : {};
    return make("a", "", [title, name === "inbox" && count], { href: `#/${name}`, ...current });
  });
  return make("header", "row strip head", [
    make(
      "a",
      "row brand",
      [
        make("img", "", [], { src: "/icon.svg", alt: "", width: "22", height: "22" }),
        make("span", "", ["Parley"]),
      ],
      { href: "#/inbox", "aria-label": "Parley, inbox" },
    ),
    make("nav", "", links, { "aria-label": "Views" }),
    make("div", "row head-end", [make("span", "soft", ["Loading…"], { role: "status" })]),
  ]);
}

/** Draws the rows, if the address is that of the inbox or of the unfiltered list, and if there are items. */
export function drawRows({ sessions, attention: { groups }, agents: listed }: First, hash: string): void {
  agents = listed;
  const isInbox = /^(?:#\/?(?:inbox)?)?$/.test(hash);
  const view = isInbox ? "inbox" : "sessions";
  const page = document.getElementById("page");
  const isList = isInbox || /^#\/sessions\/?$/.test(hash);
  if (page === null || !isList || groups.every(({ count }) => count === 0)) return;
  const now = sessions.ts;
  const rows = sessions.sessions.map((row) => rowOf(row, now));
  // Leaves out the items that the reader has put off.
  const shown = groups.map((rows) => {
    if (rows.group !== "needs_you") return rows;
    const snoozes = storedSnoozes();
    const items = rows.items.filter(({ id }) => (snoozes.get(id) ?? 0) <= now);
    return { ...rows, items, count: rows.count - rows.items.length + items.length };
  });
  page.replaceChildren(
    make("div", "shell", [
      headOf(view, shown[0]?.count ?? 0),
      make("main", "view", [
        make("h1", "visually-hidden", [VIEW_TITLES[view]]),
        make("div", `split ${isInbox ? "inbox-open" : "no-choice"}`, [
          make(
            "section",
            "split-list",
            [
              make("div", "sessions", [
                make("div", "bar strip session-bar"),
                make("div", "session-frame", [
                  make("div", "session-list virtual-list", rows, { role: "list", "aria-label": "Sessions" }),
                ]),
              ]),
            ],
            { "aria-label": "Sessions" },
          ),
          make(
            "section",
            "split-main",
            [
              isInbox &&
                make("div", "inbox", [
                  make("div", "bar inbox-bar"),
                  ...shown.map((rows) => groupOf(rows, now)),
                ]),
            ],
            { "aria-label": isInbox ? "Inbox" : "Conversation" },
          ),
        ]),
      ]),
    ]),
  );
}
