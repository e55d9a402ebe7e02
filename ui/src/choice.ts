// Choices of the reader that the browser keeps for the next visit.

/** Returns a stored choice. Returns null if there is none, or if the browser has no storage. */
export function keptChoice(name: string): string | null {
  try {
    return window.localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function keepChoice(name: string, value: string): void {
  try {
    window.localStorage.setItem(name, value);
  } catch {
    // The browser has no storage: the choice is lost when the page is closed.
  }
}
