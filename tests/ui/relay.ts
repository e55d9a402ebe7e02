// Relays between a page and its gateway: a test counts the requests of one method, and holds them or their
// answers.

import type { Page } from "playwright-core";

export interface Relay {
  /** Number of requests so far. */
  asked(): number;
  /** Holds the answers from now on, or the requests, which the gateway does not see then. */
  hold(what?: "answers" | "requests"): void;
  /** Passes on the oldest held frame. Returns false if there is none. */
  pass(): boolean;
  /** Passes on all held frames, and those that follow. */
  release(): void;
}

/** Lets the page show nothing before its connection is open, from the next load on. */
export async function withoutFirstRows(page: Page): Promise<void> {
  await page.route("**/page/first", (route) => route.fulfill({ status: 204 }));
}

/** Relays the connections that the page opens from now on, so the test must load the page again. */
export async function relayOf(page: Page, method: string): Promise<Relay> {
  let asked = 0;
  let holds: "answers" | "requests" | undefined;
  const held: (() => void)[] = [];
  await withoutFirstRows(page);
  await page.routeWebSocket(/^ws:/, (socket) => {
    const ids = new Set<string>();
    const server = socket.connectToServer();
    socket.onMessage((text) => {
      const frame = JSON.parse(String(text)) as { id?: string; method?: string };
      if (frame.method === method && frame.id !== undefined) {
        ids.add(frame.id);
        asked += 1;
        if (holds === "requests") return void held.push(() => server.send(text));
      }
      server.send(text);
    });
    server.onMessage((text) => {
      const { id } = JSON.parse(String(text)) as { id?: string };
      if (holds === "answers" && id !== undefined && ids.has(id)) held.push(() => socket.send(text));
      else socket.send(text);
    });
  });
  const pass = (): boolean => {
    const next = held.shift();
    next?.();
    return next !== undefined;
  };
  return {
    asked: () => asked,
    hold(what = "answers") {
      holds = what;
    },
    pass,
    release() {
      holds = undefined;
      while (pass());
    },
  };
}
