// The links at the top of the page.

export const VIEW_TITLES = {
  inbox: "Inbox",
  sessions: "Sessions",
  agents: "Agents",
  flow: "Flow",
  operations: "Operations",
} as const;

/** The largest count that is shown. More digits would not fit on a phone. */
export const COUNT_MAX = 99;
