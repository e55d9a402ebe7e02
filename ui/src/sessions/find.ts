// Finds sessions by parts of their key, label, name or first words, for a field with suggestions.

import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { settled } from "../clock.ts";
import { listSessions } from "../gateway.ts";
import { sessionName } from "../parts/names.ts";
import { hasWords } from "../parts/words.ts";

const FOUND_MAX = 8;
const TYPED_MS = 150;
/** Sessions to read for each word, if no session contains the words as they are typed. */
const OF_WORD_MAX = 200;
const WORDS_MAX = 3;

export interface FoundSession {
  readonly key: string;
  readonly name: string;
  readonly agentId: string;
}

async function list(search: string, limit: number): Promise<readonly FoundSession[]> {
  const more = search === "" ? {} : { search };
  const { sessions } = await listSessions({ limit, includeArchived: true, ...more });
  return sessions.map((row) => ({ key: row.key, agentId: row.agentId, name: sessionName(row) }));
}

const fits = ({ key, name }: FoundSession, words: string): boolean => hasWords(`${key} ${name}`, words);

async function find(text: string): Promise<readonly FoundSession[]> {
  const search = text.trim();
  const words = search.split(/\s+/);
  const found = await list(search, FOUND_MAX);
  if (found.length > 0 || words.length === 1) return found;
  const ofWords = await Promise.all(words.slice(0, WORDS_MAX).map((word) => list(word, OF_WORD_MAX)));
  // The sessions of the rarest word are the most likely to be complete.
  const [rarest = []] = ofWords.sort((a, b) => a.length - b.length);
  return rarest.filter((one) => fits(one, search)).slice(0, FOUND_MAX);
}

/** Returns the suggestions for a typed text, and functions that search now and after a pause. */
export function useFoundSessions() {
  /** `words`: undefined until the gateway has answered. */
  const [found, setFound] = useState<{ words?: string; sessions: readonly FoundSession[] }>({ sessions: [] });
  const latest = useRef(0);
  const search = useCallback((words: string) => {
    const mine = ++latest.current;
    // If the search fails, the user can still type a key.
    find(words)
      .catch(() => [])
      .then((sessions) => mine === latest.current && setFound({ words, sessions }));
  }, []);
  const searchSoon = useMemo(() => settled(TYPED_MS, search), [search]);
  /** Filters the suggestions by the typed text, until the gateway has answered for that text. */
  const fitting = (typed: string): readonly FoundSession[] =>
    found.words === typed ? found.sessions : found.sessions.filter((one) => fits(one, typed.trim()));
  return { fitting, answered: found.words, search, searchSoon };
}
