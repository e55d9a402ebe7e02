// A client of protocol version 4.

import { type House, joined, type Raw } from "../kit.ts";

export const V4 = { minProtocol: 4, maxProtocol: 4 };

/** Connects, and returns a function that makes a request and returns its answer. `more`: params of `connect`. */
export async function clientOf(house: House, more: object = V4) {
  const raw: Raw = await joined(house, { ...more });
  let count = 0;
  return async (method: string, params?: unknown) => {
    const id = `request-${++count}`;
    raw.send({ type: "req", id, method, params });
    return raw.res(id);
  };
}
