// Opens several apps in a test file, and closes them at its end.

import { afterAll } from "vitest";
import { type App, type Choices, openApp } from "./app.ts";

/** Returns a function that opens an app. Call this at the top of a test file. */
export function appsOfFile(): (choices?: Choices) => Promise<App> {
  const open: App[] = [];
  afterAll(async () => {
    for (const one of open.splice(0)) await one.close();
  });
  return async (choices) => {
    const app = await openApp(choices);
    open.push(app);
    return app;
  };
}
