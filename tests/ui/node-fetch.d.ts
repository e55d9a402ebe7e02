// Tests of the page use browser types, but start a gateway whose fetch is Node's.

import type { Dispatcher } from "undici-types";

declare global {
  interface RequestInit {
    dispatcher?: Dispatcher;
  }
}
