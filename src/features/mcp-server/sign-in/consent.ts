// Builds the page on which a person allows or denies the sign-in of an MCP client. It needs no script.
// CV1: all texts that the client chose are escaped and cut, and a name is marked as the client's own words.
// CV2: the page cannot be framed, loads nothing, and may send its form only to the gateway and, by the
//      gateway's answer, to the client's checked address.

import { createHash } from "node:crypto";
import type { TokenScope } from "../../../core/shapes/settings/settings.ts";
import { isLocal, type OAuthClient } from "./clients.ts";

/** A checked request for a sign-in. */
export interface SignInRequest {
  readonly client: OAuthClient;
  readonly redirectUri: string;
  readonly challenge: string;
  readonly scope: TokenScope;
  readonly state?: string;
  /** The parameters as they came, which the form sends back. */
  readonly fields: Readonly<Record<string, string>>;
}

const STYLE =
  ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}" +
  "body{max-width:34rem;margin:0 auto;padding:2rem 1rem;overflow-wrap:anywhere}" +
  "h1{font-size:1.4rem}label{display:block;margin:1rem 0}" +
  "input,select{display:block;box-sizing:border-box;width:100%;padding:.5rem;font:inherit}" +
  "button{padding:.5rem 1.2rem;margin:.5rem .5rem 0 0;font:inherit}small{display:block;opacity:.75}" +
  ".problem{color:#c22;font-weight:600}@media(prefers-color-scheme:dark){.problem{color:#f88}}";
const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (char) => ENTITIES[char] ?? char);

/** Returns the source of a form's target, as a content security policy names it. */
function sourceOf(address: string): string {
  const { protocol, hostname, origin } = new URL(address);
  const isNamed = (protocol === "https:" || protocol === "http:") && !hostname.startsWith("[");
  return isNamed ? origin : protocol;
}

function page(title: string, body: string, status: 200 | 400 | 401 | 429, target?: string): Response {
  const form = target === undefined ? "'none'" : `'self' ${sourceOf(target)}`;
  const policy =
    `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action ${form}; ` +
    "base-uri 'none'; frame-ancestors 'none'";
  const heading = escapeHtml(title);
  const html =
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${heading} – Parley</title>` +
    `<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head>` +
    `<body><main><h1>${heading}</h1>${body}</main></body></html>`;
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "cross-origin-opener-policy": "same-origin",
    // With "no-referrer", browsers send the form with the origin "null", which the gateway refuses.
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  };
  return new Response(html, { status, headers });
}

/** Shows why a request cannot be answered. The browser is not sent back to the client. */
export function refusalPage(why: string, status: 400 | 429 = 400): Response {
  const next = "Start the sign-in again in the program that opened this page.";
  return page("This sign-in cannot continue", `<p>${escapeHtml(why)}</p><p>${next}</p>`, status);
}

const RIGHTS: Readonly<Record<string, string>> = {
  "operator.read": "List and read sessions",
  "operator.write": "Read, send, start sub-agents",
};

/** Shows who asks, what it may do, and a form for the answer. */
export function consentPage({ client, redirectUri, scope, fields }: SignInRequest, problem = ""): Response {
  const unread = ", but this gateway cannot reach that address. Its name was not checked.";
  const address = client.id.startsWith("https:")
    ? `<br>It is described at <code>${escapeHtml(client.id)}</code>${client.isUnread === true ? unread : ""}`
    : "";
  const where = isLocal(redirectUri)
    ? "a program on this computer"
    : `<code>${escapeHtml(redirectUri)}</code>`;
  const hidden = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
  );
  const rights = Object.entries(RIGHTS)
    .filter(([name]) => scope === "operator.write" || name === scope)
    .map(([name, text]) => {
      const chosen = name === scope ? " selected" : "";
      return `<option value="${name}"${chosen}>${text}</option>`;
    });
  const body =
    `<p>A program that calls itself <strong><bdi>${escapeHtml(client.name)}</bdi></strong> asks to use ` +
    `Parley's session tools over MCP.${address}</p><p>Your answer goes to ${where}. ` +
    "Allow this only if you have just started the sign-in yourself.</p>" +
    (problem === "" ? "" : `<p class="problem" role="alert">${escapeHtml(problem)}</p>`) +
    `<form method="post" action="/oauth/authorize">${hidden.join("")}` +
    `<label>It may<select name="granted">${rights.join("")}</select></label>` +
    '<label>In these sessions<input name="sessions" maxlength="2000" autocomplete="off" ' +
    'placeholder="every session that your token covers"><small>Patterns, separated by commas, for example ' +
    "<code>agent:research:*</code>. The program's own session must be among them.</small></label>" +
    "<label>Your token, or the link that <code>npx parley-gateway link</code> prints" +
    '<input name="token" type="password" required autocomplete="off" maxlength="2000"></label>' +
    "<p><small>The program never sees your token. It gets one of its own, which you can revoke on the " +
    "page: Operations, Tokens.</small></p>" +
    '<button name="answer" value="allow">Allow</button>' +
    '<button name="answer" value="deny" formnovalidate>Deny</button></form>';
  return page("Allow this sign-in?", body, problem === "" ? 200 : 401, redirectUri);
}
