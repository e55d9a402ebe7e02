// Types for tests that use browser types but start a gateway, whose fetch is that of Node.

import type { Dispatcher } from "undici-types";

declare global {
  interface RequestInit {
    dispatcher?: Dispatcher;
  }
}
