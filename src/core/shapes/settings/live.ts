// Settings that change while the gateway runs. Each part gets one object for its whole life; its sections are
// always those of the newest settings. All sections change at once.
// LS1: work that must not change half-way, such as a run, takes `settingsNow` once, when it begins.

import type { Settings } from "./settings.ts";

export interface LiveSettings {
  /** The object for the parts. */
  readonly settings: Settings;
  replace(next: Settings): void;
}

const newest = new WeakMap<Settings, () => Settings>();

/** Returns an object whose properties are always those of the newest value. */
function viewOf<T extends object>(names: readonly string[], now: () => T): T {
  const properties = names.map((name) => [name, { enumerable: true, get: () => now()[name as keyof T] }]);
  return Object.defineProperties({}, Object.fromEntries(properties)) as T;
}

export function liveSettings(first: Settings): LiveSettings {
  let now = first;
  const settings = viewOf(Object.keys(first), () => now);
  newest.set(settings, () => now);
  const replace = (next: Settings): void => {
    now = next;
  };
  return { settings, replace };
}

/** Returns the newest settings as an object that never changes. */
export function settingsNow(settings: Settings): Settings {
  return newest.get(settings)?.() ?? settings;
}

/** Returns a view of values that are computed from the settings, once for each version of the settings. */
export function liveView<T extends object>(settings: Settings, compute: (now: Settings) => T): T {
  const known = new WeakMap<Settings, T>();
  const of = (now: Settings): T => {
    const value = known.get(now) ?? compute(now);
    known.set(now, value);
    return value;
  };
  return viewOf(Object.keys(of(settingsNow(settings))), () => of(settingsNow(settings)));
}
