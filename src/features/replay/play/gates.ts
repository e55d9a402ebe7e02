// Gates hold the parts of a replay until the record's time has come.

export class Gates {
  readonly #open = new Set<string>();
  readonly #waiting = new Map<string, (() => void)[]>();

  open(name: string): void {
    this.#open.add(name);
    for (const resume of this.#waiting.get(name) ?? []) resume();
    this.#waiting.delete(name);
  }

  isOpen(name: string): boolean {
    return this.#open.has(name);
  }

  wait(name: string): Promise<void> {
    if (this.#open.has(name)) return Promise.resolve();
    return new Promise((resolve) => {
      const others = this.#waiting.get(name) ?? [];
      this.#waiting.set(name, [...others, resolve]);
    });
  }
}
