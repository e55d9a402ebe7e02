/** What the program would be made of now: each file with its size and its time. */
export function madeOf(root: string): Record<string, string>;
/** Notes what the program that is in dist now was made of. */
export function noteMadeOf(root: string, files: Record<string, string>): void;
/** What is in dist is about to be something else. */
export function forgetMadeOf(root: string): void;
/** True: what is in dist was made of exactly the files that are there now. */
export function isFresh(root: string): boolean;
