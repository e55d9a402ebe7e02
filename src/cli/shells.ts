// Owns the names of the shells that are told how to complete our commands.

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];
