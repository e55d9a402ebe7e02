// Quotes words for a POSIX shell, so that a printed or stored command is read as it was meant.

export const inQuotes = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Quotes a word if a shell would not read it as it is. */
export const quoteWord = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : inQuotes(word));

export const shellLine = (words: readonly string[]): string => words.map(quoteWord).join(" ");
