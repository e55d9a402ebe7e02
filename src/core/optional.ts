// Omits unset fields of an object.

/** Returns the object without the fields that are undefined. */
export function optional<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const set: { [K in keyof T]?: Exclude<T[K], undefined> } = {};
  for (const name of Object.keys(fields) as (keyof T)[]) {
    const value = fields[name];
    if (value !== undefined) set[name] = value as Exclude<T[typeof name], undefined>;
  }
  return set;
}
