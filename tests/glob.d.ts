// Types of the glob imports that vitest resolves, with which a test of the kernel finds the parts of features.

interface ImportMeta {
  glob<T>(pattern: string, options: { readonly eager: true }): Readonly<Record<string, T>>;
}
