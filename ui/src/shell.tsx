// Owns the frame around every view: navigation and connection state.

import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { safeLine } from "../../src/core/text/safe-text.ts";
import { ConfigurationNotice } from "./configuration-notice.tsx";
import { inDemo } from "./demo/scene.ts";
import { hello, linkState, signOut, stopping } from "./gateway.ts";
import { followAttention, needsCount } from "./inbox/model.ts";
import { Boundary } from "./parts/failure.tsx";
import { lazy } from "./parts/lazy.tsx";
import { nameOf } from "./parts/names.ts";
import { hrefOf, type Route, route } from "./route.ts";
import { SessionsView } from "./sessions/view.tsx";
import { theme, turnTheme } from "./theme.ts";

interface View {
  readonly name: Route["view"];
  readonly title: string;
  readonly component: ComponentType;
}

const VIEWS: readonly View[] = [
  // Both views use the same component, so the session list keeps its state when the reader switches between
  // them.
  { name: "inbox", title: "Inbox", component: SessionsView },
  { name: "sessions", title: "Sessions", component: SessionsView },
  {
    name: "flow",
    title: "Flow",
    component: lazy(async () => (await import("./flow/view.tsx")).FlowView),
  },
  {
    name: "operations",
    title: "Operations",
    component: lazy(async () => (await import("./operations/view.tsx")).OperationsView),
  },
];

const DemoBanner = lazy(async () => (await import("./demo/banner.tsx")).DemoBanner);

/** Largest count that is shown. More digits do not fit on a phone. */
const COUNT_MAX = 99;

const THEME_WORDS = { auto: "system", light: "light", dark: "dark" };

/** Shows a banner while the page is not connected. */
function Connection() {
  if (stopping.value !== undefined)
    return (
      <p
        class="banner"
        role="status"
      >{`The gateway is ${stopping.value}. This page reconnects when it is back.`}</p>
    );
  if (linkState.value === "reconnecting") {
    return (
      <p class="banner" role="status">
        Connection lost. Reconnecting; this page may be out of date.
      </p>
    );
  }
  return null;
}

function Head({ current }: { current: View }) {
  return (
    <header class="head">
      <a class="brand" href={hrefOf({ view: "inbox" })} aria-label="Parley, inbox">
        <img src="/icon.svg" alt="" width="22" height="22" />
        <span>Parley</span>
      </a>
      <nav aria-label="Views">
        {VIEWS.map(({ name, title }) => (
          <a
            key={name}
            href={hrefOf({ view: name } as Route)}
            aria-current={name === current.name ? "page" : undefined}
          >
            {title}
            {name === "inbox" && needsCount.value > 0 && (
              <span class="nav-count">
                {needsCount.value > COUNT_MAX ? `${COUNT_MAX}+` : needsCount.value}
                <span class="visually-hidden"> need you</span>
              </span>
            )}
          </a>
        ))}
      </nav>
      <div class="head-end">
        <span class="version">{hello.value?.server.version}</span>
        <button
          type="button"
          class="quiet"
          onClick={turnTheme}
          aria-label={`Colours: ${THEME_WORDS[theme.value]}`}
          title={`Colours: ${THEME_WORDS[theme.value]}`}
        >
          {theme.value === "auto" ? "◐" : theme.value === "dark" ? "●" : "○"}
        </button>
        <button type="button" class="quiet" onClick={signOut}>
          Sign out
        </button>
      </div>
    </header>
  );
}

/** Returns the title of the browser tab: the name of the open session or tab, the view, and the program. */
function titleOf(at: Route, view: string): string {
  const session = at.view === "sessions" && at.key !== undefined ? [safeLine(nameOf(at.key))] : [];
  const tab =
    at.view === "operations" && at.tab !== undefined
      ? [safeLine(at.tab).replace(/^./, (first) => first.toUpperCase())]
      : [];
  return [...session, ...tab, view, "Parley"].join(" · ");
}

/** Refuses files that are dropped outside of any drop area. Otherwise the browser would open them. */
function refuseFiles(event: DragEvent): void {
  const { dataTransfer, defaultPrevented } = event;
  if (defaultPrevented || dataTransfer === null || !dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  dataTransfer.dropEffect = "none";
}

export function Shell() {
  const current = VIEWS.find(({ name }) => name === route.value.view) ?? VIEWS[0];
  const badge = needsCount.value === 0 ? "" : `(${needsCount.value}) `;
  const title = badge + titleOf(route.value, current?.title ?? "");
  useEffect(followAttention, []);
  useEffect(() => {
    const events = ["dragover", "drop"] as const;
    for (const event of events) document.addEventListener(event, refuseFiles);
    return () => {
      for (const event of events) document.removeEventListener(event, refuseFiles);
    };
  }, []);
  useEffect(() => {
    document.title = title;
  }, [title]);
  if (current === undefined) return null;
  const Shown = current.component;
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => document.getElementById("view")?.focus()}>
        Skip to content
      </button>
      <Head current={current} />
      <Connection />
      <ConfigurationNotice />
      {inDemo && <DemoBanner />}
      <main id="view" class="view" tabIndex={-1}>
        <h1 class="visually-hidden">{current.title}</h1>
        <Boundary resetKey={hrefOf(route.value)}>
          <Shown />
        </Boundary>
      </main>
    </div>
  );
}
