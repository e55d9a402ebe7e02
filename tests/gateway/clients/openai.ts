// The official client of OpenAI's API, and a run that answers when the test says so.

import OpenAI from "openai";
import { type House, type Play, TOKEN } from "../kit.ts";

/** Returns the official client. It retries only if a test asks for it. */
export function openAi(
  house: Pick<House, "http">,
  more: ConstructorParameters<typeof OpenAI>[0] = {},
): OpenAI {
  return new OpenAI({ apiKey: TOKEN, baseURL: `${house.http}/v1`, maxRetries: 0, ...more });
}

export function said(content: string): { role: "user"; content: string } {
  return { role: "user", content };
}

/** A play that reports its start, and ends when the test releases it. */
export interface HeldPlay {
  readonly play: Play;
  /** Resolves with the handle of the run when it has started. */
  readonly begun: Promise<Parameters<Play>[0]>;
  end(reply: string): void;
}

export function heldPlay(): HeldPlay {
  const begun = Promise.withResolvers<Parameters<Play>[0]>();
  const ended = Promise.withResolvers<string>();
  return {
    begun: begun.promise,
    end: ended.resolve,
    play: (handle) => {
      begun.resolve(handle);
      return new Promise((resolve, reject) => {
        handle.signal.addEventListener("abort", () => reject(new Error("stopped")));
        void ended.promise.then(resolve);
      });
    },
  };
}
