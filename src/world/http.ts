// Loads Node's HTTP modules.
// NH1: no module imports `node:http`. An `import` reads every export of a module; one of them is WebSocket,
// for which Node loads its whole `fetch`. That costs 14 MB and 40 ms, and no server needs it.

/** Returns the same as `import("node:http")`, without loading `fetch`. */
export const plainHttp = (): typeof import("node:http") => process.getBuiltinModule("node:http");

let isSystemTrusted = false;

/**
 * Makes TLS connections of this process trust the certificates of the system and of SSL_CERT_FILE, too. By
 * itself Node trusts only those that it brings along, and those of NODE_EXTRA_CA_CERTS. Takes 40 ms once.
 */
export function trustSystem(): void {
  if (isSystemTrusted) return;
  isSystemTrusted = true;
  const tls = process.getBuiltinModule("node:tls");
  const all = [...tls.getCACertificates("default"), ...tls.getCACertificates("system")];
  tls.setDefaultCACertificates([...new Set(all)]);
}

/** Returns the same as `import("node:https")`, without loading `fetch`. */
export function secureHttp(): typeof import("node:https") {
  trustSystem();
  return process.getBuiltinModule("node:https");
}
