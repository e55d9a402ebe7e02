// Owns the method that returns the record of a chain in pages. Credentials are redacted (I14).

import { recordText } from "../../../contract/chain-record.ts";
import type { ParamsOf, PayloadOf } from "../../../contract/methods.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { LONG_CHARS, type Redactor } from "../../../core/text/redact/redact.ts";
import { RECORD_BYTES_MAX, readChainRecord } from "../../../store/queries/chains/record.ts";
import type { Db } from "../../../store/sql.ts";
import type { Timer } from "../../../world.ts";
import type { BasicDeps, CallContext } from "../../call.ts";

/** Characters of a page. */
const PAGE_CHARS = 512 * 1024;

export interface RecordDeps extends BasicDeps {
  /** Version of this program. */
  readonly version: string;
}

interface Written {
  readonly chainId: string;
  readonly text: string;
  readonly checksum: string;
}

/** Time after which a record is forgotten if nobody reads its next page. */
const FORGOTTEN_AFTER_MS = 60_000;

/** The record whose pages are being read. */
const reading = new WeakMap<Db, Written & { readonly forgetting: Timer }>();

/** Masks all texts in a value, but lets other work run. */
export async function redacted<T>(value: T, redactor: Redactor, pace = redactor.pace()): Promise<T> {
  if (typeof value === "string")
    return (value.length > LONG_CHARS ? await redactor.whole(value) : redactor.mask(value)) as T;
  if (typeof value !== "object" || value === null) return value;
  await pace();
  if (Array.isArray(value)) {
    const masked: unknown[] = [];
    for (const one of value) masked.push(await redacted(one, redactor, pace));
    return masked as T;
  }
  const fields: [string, unknown][] = [];
  for (const [name, one] of Object.entries(value)) fields.push([name, await redacted(one, redactor, pace)]);
  return Object.fromEntries(fields) as T;
}

export async function written(
  { access: { db }, deps }: CallContext<RecordDeps>,
  chainId: string,
): Promise<Result<Written>> {
  const found = await readChainRecord(db, chainId);
  if (found === undefined) {
    return fail("chain_not_found", `there is no chain ${JSON.stringify(chainId)}`, {
      hint: "chains.list shows the ids.",
    });
  }
  if (found === "unfinished") {
    return fail("session_busy", "the chain has unfinished runs, so its record is not complete", {
      hint: "Try again when they have ended, or stop them.",
    });
  }
  if (found === "too large") {
    const most = `${RECORD_BYTES_MAX / (1024 * 1024)} MB`;
    return fail("invalid_argument", `the record of the chain would be larger than ${most}`);
  }
  const record = await redacted({ program: deps.version, ...found }, deps.world.redactor);
  return ok({ chainId, ...recordText(record) });
}

export async function chainRecord(
  ctx: CallContext<RecordDeps>,
  { chainId, offset = 0 }: ParamsOf<"chains.record">,
): Promise<Result<PayloadOf<"chains.record">>> {
  const { db } = ctx.access;
  const known = offset === 0 ? undefined : reading.get(db);
  const found = known?.chainId === chainId ? ok(known) : await written(ctx, chainId);
  if (!found.ok) return found;
  const { text, checksum } = found.value;
  const page = text.slice(offset, offset + PAGE_CHARS);
  const nextOffset = offset + page.length;
  const more = nextOffset < text.length;
  reading.get(db)?.forgetting.cancel();
  reading.delete(db);
  if (more) {
    const { clock } = ctx.deps.world;
    const forgetting = clock.after(FORGOTTEN_AFTER_MS, () => void reading.delete(db));
    reading.set(db, { ...found.value, forgetting });
  }
  return ok({ chainId, checksum, text: page, ...(more ? { nextOffset } : {}) });
}
