// The tests of the page are checked with the types of a browser. They start a gateway, and its fetch is that of Node.

import type { Dispatcher } from "undici-types";

declare global {
  interface RequestInit {
    dispatcher?: Dispatcher;
  }
}
