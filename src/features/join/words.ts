// Owns the words of commands and settings for joined programs.

/** The coding agents that can join. */
export const PROGRAMS = ["claude-code", "codex", "opencode", "gemini", "qwen"] as const;

/**
 * Reactions if a message waits for a joined window of a coding agent, and the window cannot be woken.
 * `notify`: the owner is notified. `resume`: the conversation is continued without a window; if that fails,
 * the owner is notified.
 */
export const WAKES = ["notify", "resume"] as const;
export type Wake = (typeof WAKES)[number];
