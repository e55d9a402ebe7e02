// Limits the size of maps and sets that would otherwise grow for as long as the process runs.

/** Removes the oldest entry if a map or set has more than `max` entries. Call it after each insertion. */
export function evictOldest(
  kept: { readonly size: number; keys(): Iterator<string>; delete(key: string): boolean },
  max: number,
): void {
  const oldest = kept.size > max ? kept.keys().next() : undefined;
  if (oldest?.done === false) kept.delete(oldest.value);
}

/** Returns the value of a key, and makes it if it is missing. The map keeps at most `max` values. */
export function remember<V>(kept: Map<string, V>, key: string, max: number, make: () => V): V {
  const known = kept.get(key);
  if (known !== undefined) return known;
  const made = make();
  kept.set(key, made);
  evictOldest(kept, max);
  return made;
}

/** Maximum number of values for tools with the same parameters. */
const SAME_PARAMETERS_MAX = 500;

/**
 * Returns a function that calls `make` once for each tool, and then returns the same value. Tools are the
 * same if they share their parameters object and have the same name and description.
 */
export function oncePerTool<
  T extends { readonly name: string; readonly description: string; readonly parameters: object },
  V,
>(make: (tool: T) => V): (tool: T) => V {
  const known = new WeakMap<object, Map<string, V>>();
  return (tool) => {
    const { name, description, parameters } = tool;
    const values = known.get(parameters) ?? new Map<string, V>();
    known.set(parameters, values);
    return remember(values, `${name} ${description}`, SAME_PARAMETERS_MAX, () => make(tool));
  };
}
