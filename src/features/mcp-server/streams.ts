// Limits the concurrent MCP exchanges, cancels them, and ends each exactly once.
// An exchange ends in one of four ways: it was answered, the client disconnected, it was cancelled, or the
// reader stopped reading. Only in the first case is it certain that the connection got the whole answer.
// MX2: one token can't use all exchanges.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { Shares } from "../../gateway/shares.ts";
import type { Clock } from "../../world.ts";

/** Maximum concurrent exchanges of one token and of all tokens, including open streams. */
const EXCHANGES = { ofOne: 512, all: 1_000 };
/** A reader that reads nothing for this long, while data is waiting, counts as disconnected. */
const READER_GONE_MS = 60_000;

/** A request, from its headers to the last byte of the answer. */
export interface Exchange {
  /**
   * Runs `action` when the exchange ends, or immediately if it has ended. `written`: the connection got the
   * whole answer.
   */
  atEnd(action: (written: boolean) => void): void;
  /** Returns the response. The exchange ends when the response's body ends. */
  until(response: Response): Response;
  /** Called when the client disconnects. */
  end(): void;
}

export class Exchanges {
  readonly #clock: Clock;
  readonly #shares = new Shares(EXCHANGES);
  readonly #cancels = new Map<string, AbortController>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts an exchange if the limit permits it. */
  begin(callerId: string): Result<Exchange> {
    if (!this.#shares.take(callerId)) {
      return fail("rate_limited", "too many unanswered MCP requests; try again in a moment", {
        details: { retryAfterMs: 1_000 },
      });
    }
    const actions: ((written: boolean) => void)[] = [() => this.#shares.give(callerId)];
    let ended: { readonly written: boolean } | undefined;
    const end = (written: boolean): void => {
      ended ??= { written };
      for (const action of actions.splice(0)) action(ended.written);
    };
    return ok({
      atEnd(action) {
        if (ended === undefined) actions.push(action);
        else action(ended.written);
      },
      until: (response) => this.#watchEnd(response, end),
      end: () => end(false),
    });
  }

  /** Makes requests with these ids cancellable until the exchange ends. `whose`: one client's connection. */
  cancellable(exchange: Exchange, whose: string, ids: readonly (string | number)[]): AbortSignal {
    const controller = new AbortController();
    for (const id of ids) {
      const name = nameOf(whose, id);
      this.#cancels.set(name, controller);
      exchange.atEnd(() => {
        if (this.#cancels.get(name) === controller) this.#cancels.delete(name);
      });
    }
    return controller.signal;
  }

  cancel(whose: string, id: string | number): void {
    this.#cancels.get(nameOf(whose, id))?.abort();
  }

  /** Returns the response. `end` is called once, when the body has ended or the reader has disconnected. */
  #watchEnd(response: Response, end: (written: boolean) => void): Response {
    const { body, status, headers } = response;
    if (body === null) {
      end(true);
      return response;
    }
    const reader = body.getReader();
    // Whether the reader has requested data. A healthy reader requests data between any two checks.
    let asks = true;
    let timer = this.#clock.after(READER_GONE_MS, () => look());
    const over = (written: boolean): void => {
      timer.cancel();
      end(written);
    };
    const look = (): void => {
      if (asks) {
        timer = this.#clock.after(READER_GONE_MS, look);
        return;
      }
      over(false);
      reader.cancel("the reader has stopped reading").catch(() => {});
    };
    const stream = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          asks = true;
          try {
            const { value } = await reader.read();
            asks = false;
            if (value !== undefined) return controller.enqueue(value);
            over(true);
            controller.close();
          } catch (error) {
            over(false);
            controller.error(error);
          }
        },
        cancel(reason) {
          over(false);
          return reader.cancel(reason);
        },
      },
      // Disable prefetching, so that `asks` shows only requests of the reader itself.
      { highWaterMark: 0 },
    );
    return new Response(stream, { status, headers });
  }
}

function nameOf(whose: string, id: string | number): string {
  return `${typeof id} ${id} ${whose}`;
}
