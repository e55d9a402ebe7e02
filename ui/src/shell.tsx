// Owns the frame around every view: navigation and connection state.

import { Button } from "./parts/button.tsx";
import "./overlay.css";
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { safeLine } from "../../src/core/text/safe-text.ts";
import { agentName } from "./agents/known.ts";
import { ConfigurationNotice } from "./configuration-notice.tsx";
import { inDemo } from "./demo/scene.ts";
import { hello, linkState, may, signOut, stopping } from "./gateway.ts";
import { followAttention, needsCount } from "./inbox/model.ts";
import { followKeys } from "./keys/page.ts";
import { overlay } from "./overlay.ts";
import { Boundary } from "./parts/failure.tsx";
import { lazy } from "./parts/lazy.tsx";
import { nameOf } from "./parts/names.ts";
import { chainName, hrefOf, type Route, route } from "./route.ts";
import { SessionsView } from "./sessions/view.tsx";
import { THEME_WORDS, theme, turnTheme } from "./theme.ts";
import { COUNT_MAX, VIEW_TITLES } from "./views.ts";

const VIEWS: Readonly<Record<Route["view"], ComponentType>> = {
  // Both views use the same component, so the session list keeps its state when the reader switches between
  // them.
  inbox: SessionsView,
  sessions: SessionsView,
  agents: lazy(async () => (await import("./agents/view.tsx")).AgentsView),
  flow: lazy(async () => (await import("./flow/view.tsx")).FlowView),
  operations: lazy(async () => (await import("./operations/view.tsx")).OperationsView),
};

const Overlays = lazy(async () => (await import("./palette/overlays.tsx")).Overlays);

const DemoBanner = lazy(async () => (await import("./demo/banner.tsx")).DemoBanner);

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

function Head() {
  return (
    <header class="row strip head">
      <a class="row brand" href={hrefOf({ view: "inbox" })} aria-label="Parley, inbox">
        <img src="/icon.svg" alt="" width="22" height="22" />
        <span>Parley</span>
      </a>
      <nav aria-label="Views">
        {Object.entries(VIEW_TITLES).map(([name, title]) => (
          <a
            key={name}
            href={hrefOf({ view: name } as Route)}
            aria-current={name === route.value.view ? "page" : undefined}
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
      <div class="row head-end">
        <span class="version small">{hello.value?.server.version}</span>
        {may("operator.write") && (
          <button
            type="button"
            class="to-dispatch"
            onClick={() => {
              overlay.value = "dispatch";
            }}
            title="Ask an agent (@)"
          >
            <span aria-hidden="true">@</span> <span class="to-dispatch-words">Ask an agent</span>
          </button>
        )}
        <Button
          text="⌕"
          class="quiet to-palette"
          onClick={() => {
            overlay.value = "palette";
          }}
          aria-label="Command palette"
          title="Command palette (Ctrl+K)"
        />
        <Button
          text={theme.value === "auto" ? "◐" : theme.value === "dark" ? "●" : "○"}
          class="quiet"
          onClick={() => turnTheme()}
          aria-label={`Colours: ${THEME_WORDS[theme.value]}`}
          title={`Colours: ${THEME_WORDS[theme.value]}`}
        />
        <Button text="Sign out" class="quiet" onClick={signOut} />
      </div>
    </header>
  );
}

/** Returns what the title of the browser tab names: the open session, chain or tab, or else the view. */
function titleOf(at: Route): string {
  const view = VIEW_TITLES[at.view];
  if (at.view === "sessions" && at.key !== undefined) return safeLine(nameOf(at.key));
  if (at.view === "agents" && at.agentId !== undefined) return safeLine(agentName(at.agentId));
  if (at.view === "operations" && at.tab !== undefined)
    return safeLine(at.tab).replace(/^./, (first) => first.toUpperCase());
  return at.view === "flow" && chainName.value !== undefined
    ? `${safeLine(chainName.value)} · ${view}`
    : view;
}

/** Prevents the browser from opening a file that is dropped outside of the areas for files. */
function refuseFiles(event: DragEvent): void {
  const { dataTransfer, defaultPrevented } = event;
  if (defaultPrevented || dataTransfer === null || !dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  dataTransfer.dropEffect = "none";
}

export function Shell() {
  const at = route.value;
  const badge = needsCount.value === 0 ? "" : `(${needsCount.value}) `;
  const title = `${badge}${titleOf(at)} · Parley`;
  useEffect(followAttention, []);
  useEffect(followKeys, []);
  useEffect(() => {
    const events = ["dragover", "drop"] as const;
    for (const event of events) document.addEventListener(event, refuseFiles);
    return () => {
      for (const event of events) document.removeEventListener(event, refuseFiles);
    };
  }, []);
  useLayoutEffect(() => {
    document.title = title;
  }, [title]);
  const Shown = VIEWS[at.view];
  return (
    <div class="shell">
      <Button text="Skip to content" class="skip" onClick={() => document.getElementById("view")?.focus()} />
      <Head />
      <Connection />
      <ConfigurationNotice />
      {inDemo && <DemoBanner />}
      <main id="view" class="view" tabIndex={-1}>
        <h1 class="visually-hidden">{VIEW_TITLES[at.view]}</h1>
        <Boundary resetKey={hrefOf(at)}>
          <Shown />
        </Boundary>
      </main>
      {overlay.value !== undefined && (
        <section class="overlay" aria-label="Dialog">
          <Overlays />
        </section>
      )}
    </div>
  );
}
