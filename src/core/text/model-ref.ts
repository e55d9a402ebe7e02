// Splits the full name of a model.

/** Splits `<provider>/<model>`. The model's own name may contain slashes. */
export function splitRef(ref: string): { readonly provider: string; readonly model: string } {
  const slash = ref.indexOf("/");
  return { provider: ref.slice(0, Math.max(0, slash)), model: ref.slice(slash + 1) };
}
