// The tests of the page are checked with the types of a browser. What they start is a gateway, whose fetch is Node's.

import type { Dispatcher } from "undici-types";

declare global {
  interface RequestInit {
    dispatcher?: Dispatcher;
  }
}
