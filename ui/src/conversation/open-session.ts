// Names the conversation whose messages are drawn, for the parts of its messages.

import { createContext } from "preact";

interface OpenSession {
  readonly sessionKey: string;
  readonly sessionId?: string | undefined;
  readonly agentId: string;
  /** The message to which a link leads. It is marked. */
  readonly target?: string | undefined;
  /** True if a reset has ended the conversation. */
  readonly isEarlier?: boolean;
}

export const OpenSession = createContext<OpenSession>({ sessionKey: "", agentId: "" });
