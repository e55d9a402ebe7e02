// Implements search: asks the configured provider, and returns titles, addresses and snippets as plain text.
// Runs in the process of fetch.ts, never inside a sandbox, because the request contains the key.
// WS1: the request, with its key, goes only to the configured address. No redirect is followed.
// WS2: errors contain neither the key, nor the address, nor text of the server.
// WS3: the bytes of the answer and the characters of the result are limited.

import type { ToolResultOf } from "../../contract/tools.ts";
import { fieldsOf, isObject, jsonOf, objectsOf, textOf } from "../../core/json.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { SearchProvider, SearchSettings } from "../../core/shapes/settings/settings.ts";
import {
  SEARCH_COUNT_LIMIT,
  SEARCH_SNIPPET_MAX_CHARS,
  SEARCH_TITLE_MAX_CHARS,
} from "../../core/shapes/tool.ts";
import { cut, head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { FROM_OUTSIDE, get, unpacked } from "./fetch.ts";
import { htmlToText } from "./html.ts";

/** A result with a longer address is left out, because a part of an address leads nowhere. */
const ADDRESS_MAX_CHARS = 2_000;
/** Maximum characters of a title or snippet that are read before it is shortened. */
const SOURCE_MAX_CHARS = 10_000;
/** Maximum results that are read: more than are returned, because some may be left out. */
const READ_MAX = 100;

interface Provider {
  /** Default address. Absent: the configuration must name one. */
  readonly url?: string;
  readonly path: string;
  readonly query: (text: string, count: number) => Readonly<Record<string, string>>;
  readonly headers: (apiKey: string) => Readonly<Record<string, string>>;
  /** The list of results in an answer, and the field of a result that contains the snippet. */
  readonly results: (body: Readonly<Record<string, unknown>>) => unknown;
  readonly snippet: string;
  /** Meaning of status codes that the provider uses in its own way. */
  readonly statuses: Readonly<Record<number, string>>;
}

const WRONG_KEY = "the search provider rejected the key. Check tools.search.apiKey.";

const PROVIDERS: Readonly<Record<SearchProvider, Provider>> = {
  brave: {
    url: "https://api.search.brave.com/res/v1",
    path: "web/search",
    query: (q, count) => ({ q, count: String(count), text_decorations: "false" }),
    headers: (apiKey) => ({ "x-subscription-token": apiKey }),
    // An answer without results has no `web`.
    results: ({ web = { results: [] } }) => fieldsOf(web).results,
    snippet: "description",
    statuses: {
      403: WRONG_KEY,
      422: "the search provider rejected the key or the query. Check tools.search.apiKey.",
    },
  },
  searxng: {
    path: "search",
    query: (q) => ({ q, format: "json" }),
    headers: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
    results: ({ results }) => results,
    snippet: "content",
    statuses: { 403: "the search server refused. Add json to search.formats in the settings of SearXNG." },
  },
};

const failSearch = (why: string): Failure => fail("search_failed", why);

function refusal(status: number, { statuses }: Provider): Failure {
  if (status === 429) return fail("rate_limited", "the limit of the search provider is reached. Try later.");
  const meaning = statuses[status] ?? (status === 401 ? WRONG_KEY : undefined);
  if (meaning !== undefined) return failSearch(meaning);
  if (status >= 300 && status <= 399)
    return failSearch(
      "the search server redirects. Set tools.search.url to the address that it redirects to.",
    );
  return failSearch(`the search server answered ${status}`);
}

/** Returns untrusted HTML or text as one line of plain text. */
function line(value: unknown, address: string, charsMax: number): string {
  const { text } = htmlToText(head(textOf(value) ?? "", SOURCE_MAX_CHARS), address);
  return cut(safeLine(text.replaceAll(/\s+/g, " ").trim()), charsMax);
}

export async function searchWeb(
  args: Record<string, unknown>,
  { provider: name, apiKey, url }: SearchSettings,
): Promise<Result<ToolResultOf<"search">>> {
  const provider = PROVIDERS[name];
  const base = url ?? provider.url;
  if (base === undefined) return failSearch("tools.search.url is not set");
  const count = Number(args.count ?? SEARCH_COUNT_LIMIT.fallback);
  const address = new URL(base);
  address.pathname = address.pathname.replace(/\/?$/, `/${provider.path}`);
  address.search = new URLSearchParams(provider.query(String(args.query), count)).toString();
  address.hash = "";
  const headers = { accept: "application/json", ...(apiKey === undefined ? {} : provider.headers(apiKey)) };
  const answer = await get(address.href, base, "answer", headers);
  if (!answer.ok) return answer.code === "fetch_failed" ? failSearch(answer.error) : answer;
  const { status } = answer.value;
  if (status < 200 || status > 299) return refusal(status, provider);
  const bytes = await unpacked(answer.value, "answer");
  if (!bytes.ok) return bytes.code === "fetch_failed" ? failSearch(bytes.error) : bytes;
  const body = jsonOf(bytes.value);
  if (!isObject(body))
    return failSearch("the answer of the search server is not JSON. Check tools.search.url.");
  const results = provider.results(body);
  if (!Array.isArray(results))
    return failSearch("the answer of the search server has no results. Check tools.search.url.");
  const hits = objectsOf(results, READ_MAX).flatMap((result) => {
    const address = textOf(result.url) ?? "";
    const url = URL.canParse(address) ? new URL(address).href : "";
    if (!/^https?:/.test(url) || url.length > ADDRESS_MAX_CHARS) return [];
    const title = line(result.title, url, SEARCH_TITLE_MAX_CHARS);
    return [{ title, url, snippet: line(result[provider.snippet], url, SEARCH_SNIPPET_MAX_CHARS) }];
  });
  return ok({ status: "ok", results: hits.slice(0, count), origin: FROM_OUTSIDE });
}
