// Authenticates web hooks: by the hooks' own token, or a signature over the body.
// HP1: tokens and signatures are compared as a whole, in constant time.
// HP2: a token of the gateway is not valid for hooks, even if it is configured as the hooks' token. The
//      hooks' token is valid for nothing else.
// HP3: an address that sent too many wrong tokens has to wait; a right token or signature is always accepted,
// because several senders may share the address of a proxy.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { createGuessLimit, isSameToken } from "../../gateway/auth.ts";
import type { Clock } from "../../world.ts";
import type { HookMapping, HookSettings } from "./settings.ts";

/** Match 32 bytes, the size of an HMAC-SHA256, in hex and in base64. */
const HEX = /^(?:sha256=)?([0-9a-f]{64})$/i;
const BASE64 = /^(?:sha256=)?([A-Za-z0-9+/]{43}=)$/;

/** Creates the check of the hooks' token. `gatewayTokens`: tokens that are not valid for hooks. */
export function createHookGuard(clock: Clock, gatewayTokens: readonly string[]) {
  const guesses = createGuessLimit(clock);
  return {
    /** Returns whether the hooks' token is not a token of the gateway. */
    isUsable: ({ token }: HookSettings) => !token || !gatewayTokens.includes(token),
    admit({ token: own }: HookSettings, remote: string, given: string | undefined): Result<void> {
      const usable = own && !gatewayTokens.includes(own) ? own : undefined;
      if (given === undefined || given === "") {
        return fail("unauthorized", "the web hooks' token is required", {
          hint: "Send hooks.token as Authorization: Bearer, or in the header x-parley-token.",
        });
      }
      if (usable !== undefined && isSameToken(given, usable)) return ok(undefined);
      const allowed = guesses.check(remote);
      if (!allowed.ok) return allowed;
      guesses.note(remote);
      return fail("unauthorized", "this is not the web hooks' token", {
        hint:
          usable === undefined
            ? "No token is valid here: set hooks.token, different from every token of the gateway."
            : "Use hooks.token: the gateway's token is not valid for web hooks.",
      });
    },
  };
}

/**
 * Returns a function that checks a body against the signature in the headers. Fails if the headers have no
 * signature; the body need not be read then.
 */
export function signatureCheck(
  { preset, secret, signatureHeader = "x-signature-256" }: HookMapping,
  header: (name: string) => string | undefined,
): Result<(body: Uint8Array) => Result<void>> {
  const isGithub = preset === "github";
  const name = isGithub ? "X-Hub-Signature-256" : signatureHeader;
  const text = header(name)?.trim() ?? "";
  const hex = HEX.exec(text)?.[1];
  const base64 = isGithub ? undefined : BASE64.exec(text)?.[1];
  if (secret === undefined || (hex ?? base64) === undefined) {
    return fail("unauthorized", `this web hook must be signed: ${name} has no HMAC-SHA256`, {
      hint: "Configure the mapping's secret at the sender.",
    });
  }
  const given = hex === undefined ? Buffer.from(base64 ?? "", "base64") : Buffer.from(hex, "hex");
  return ok((body) => {
    const wanted = createHmac("sha256", secret).update(body).digest();
    if (timingSafeEqual(wanted, given)) return ok(undefined);
    return fail(
      "unauthorized",
      `${name} does not match the body: the secret differs, or a proxy changed the body`,
    );
  });
}

/** Hashes a body, so that it can be recognised without being kept. */
export function digestOf(body: Uint8Array | string): string {
  return createHash("sha256").update(body).digest("hex");
}
