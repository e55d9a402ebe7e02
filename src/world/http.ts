// Loads Node's HTTP modules.
// NH1: nothing imports `node:http`: an `import` reads every name of a module, and one of them is the
// browsers' WebSocket, for which Node loads its whole `fetch`: 14 MB and 40 ms that no server needs.

/** Returns the same as `import("node:http")`, without loading `fetch`. */
export const plainHttp = (): typeof import("node:http") => process.getBuiltinModule("node:http");

/** Returns the same as `import("node:https")`, without loading `fetch`. */
export const secureHttp = (): typeof import("node:https") => process.getBuiltinModule("node:https");
