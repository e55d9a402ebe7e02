// Loads Node's HTTP modules.
// NH1: no module imports `node:http`. An `import` reads every export of a module; one of them is WebSocket,
// for which Node loads its whole `fetch`. That costs 14 MB and 40 ms, and no server needs it.

/** Returns the same as `import("node:http")`, without loading `fetch`. */
export const plainHttp = (): typeof import("node:http") => process.getBuiltinModule("node:http");

/** Returns the same as `import("node:https")`, without loading `fetch`. */
export const secureHttp = (): typeof import("node:https") => process.getBuiltinModule("node:https");
