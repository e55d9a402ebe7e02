// Owns how this process comes by Node's HTTP.
// NH1: nothing imports `node:http`: an `import` reads every name of a module, and one of that module's is the
//      browsers' WebSocket, for which Node loads its whole `fetch`: 14 MB and 40 ms that no server needs.

/** What `import("node:http")` would give, without the price. */
export const plainHttp = (): typeof import("node:http") => process.getBuiltinModule("node:http");

/** The same for https. */
export const secureHttp = (): typeof import("node:https") => process.getBuiltinModule("node:https");
