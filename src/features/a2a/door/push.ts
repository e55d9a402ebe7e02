// Owns the operations for push notifications: an A2A client names an address that is notified when its task
// ends.
// PU1: only hosts in `a2a.notifyHosts` are notified, so a client cannot send requests into this network.
// PU2: an address is told nothing once its client's token may no longer read the task (`notify.ts`).

import {
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  ListTaskPushNotificationConfigsRequest,
  TaskPushNotificationConfig,
} from "@a2a-js/sdk";
import {
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotFoundError,
} from "@a2a-js/sdk/errors";
import { fieldsOf } from "../../../core/json.ts";
import type { Run } from "../../../core/shapes/run.ts";
import type { Settings } from "../../../core/shapes/settings/settings.ts";
import { quoted } from "../../../core/text/cut.ts";
import type { Unit } from "../../../engine/unit.ts";
import type { BasicDeps } from "../../../gateway/call.ts";
import { takeAdvisoryLock } from "../../../store/locks.ts";
import { getRun } from "../../../store/queries/runs/runs.ts";
import type { Db } from "../../../store/sql.ts";
import {
  deletePushConfig,
  getPushConfig,
  type PushConfig,
  pushConfigsOf,
  putPushConfig,
  queuePush,
} from "./notify.ts";

/** Maximum number of addresses of one task. */
const CONFIGS_MAX = 8;
const URL_CHARS_MAX = 2_000;
/** Letters that may be part of a header. */
const HEADER_TEXT = /^[!-~]{0,2000}$/;

/** An address as a client names it, checked. */
export type PushAddress = Pick<PushConfig, "url" | "token" | "scheme" | "credentials"> & {
  /** Absent: the gateway chooses one. */
  readonly id?: string;
};

/** Returns whether clients can have an address notified. */
export function canPush({ a2a }: Settings): boolean {
  return a2a.notifyHosts.length > 0;
}

function makeMalformed(text: string): Error {
  return new RequestMalformedError(text);
}

/** Checks an address. Throws an A2A error that names what is wrong. */
export function readAddress(config: TaskPushNotificationConfig, settings: Settings): PushAddress {
  if (!canPush(settings)) throw new PushNotificationNotSupportedError();
  const { id, url, token, authentication } = config;
  const parsed = url.length <= URL_CHARS_MAX && URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["http:", "https:"].includes(parsed.protocol) || parsed.username !== "")
    throw makeMalformed("url must be an http or https address without a user");
  if (!settings.a2a.notifyHosts.includes(parsed.host))
    throw makeMalformed(`the host ${quoted(parsed.host, 100)} is not in a2a.notifyHosts`);
  const { scheme = "", credentials = "" } = authentication ?? {};
  if (authentication !== undefined && scheme === "") throw makeMalformed("authentication.scheme is missing");
  if (!/^[A-Za-z0-9-]{0,40}$/.test(scheme) || !HEADER_TEXT.test(token) || !HEADER_TEXT.test(credentials))
    throw makeMalformed("token, scheme and credentials must be visible ASCII characters");
  if (id !== "" && !/^[\w.~-]{1,128}$/.test(id))
    throw makeMalformed("id must be letters, digits, ., _, ~ and -");
  return { url, token, scheme, credentials, ...(id === "" ? {} : { id }) };
}

/** Stores an address in the transaction that accepts the task, or later. */
export async function storeAddress(unit: Unit, runId: string, address: PushAddress): Promise<PushConfig> {
  const config = { ...address, id: address.id ?? unit.newId(), runId, createdAt: unit.now };
  await putPushConfig(unit.tx, config);
  return config;
}

function jsonOf({ id, runId, url, token, scheme, credentials }: PushConfig): unknown {
  const authentication = scheme === "" ? undefined : { scheme, credentials };
  return TaskPushNotificationConfig.toJSON({ tenant: "", id, taskId: runId, url, token, authentication });
}

/** Returns the run of a task, if it belongs to the client. */
type OwnRun = (taskId: string) => Promise<Run>;

export interface PushOperations {
  readonly [operation: string]: (params: unknown, ownRun: OwnRun) => Promise<unknown>;
}

export function pushOperations({ engine, settings }: BasicDeps): PushOperations {
  const db = (): Db => engine.store.db;
  return {
    async CreateTaskPushNotificationConfig(params, ownRun) {
      const config = TaskPushNotificationConfig.fromJSON(fieldsOf(params));
      const address = readAddress(config, settings);
      const { runId } = await ownRun(config.taskId);
      const stored = await engine.commit(async (unit) => {
        await takeAdvisoryLock(unit.tx, "limits");
        const known = await pushConfigsOf(unit.tx, runId);
        if (known.length >= CONFIGS_MAX && !known.some(({ id }) => id === address.id))
          throw makeMalformed(`a task has at most ${CONFIGS_MAX} addresses`);
        const one = await storeAddress(unit, runId, address);
        // The task may have ended before its address was known.
        const run = await getRun(unit.tx, runId);
        if (run !== undefined) await queuePush(unit, one, run);
        return one;
      });
      return jsonOf(stored);
    },
    async GetTaskPushNotificationConfig(params, ownRun) {
      const { taskId, id } = GetTaskPushNotificationConfigRequest.fromJSON(fieldsOf(params));
      const { runId } = await ownRun(taskId);
      const config = await getPushConfig(db(), runId, id);
      if (config === undefined) throw new TaskNotFoundError("the task has no address with this id");
      return jsonOf(config);
    },
    async ListTaskPushNotificationConfigs(params, ownRun) {
      const request = ListTaskPushNotificationConfigsRequest.fromJSON(fieldsOf(params));
      const { runId } = await ownRun(request.taskId);
      // A page token is the id of the last address of the page before.
      const all = await pushConfigsOf(db(), runId);
      if (!Number.isInteger(request.pageSize) || request.pageSize < 0)
        throw makeMalformed("pageSize must be a whole number of 0 or more");
      const before = all.findIndex(({ id }) => id === request.pageToken);
      if (request.pageToken !== "" && before === -1)
        throw makeMalformed("pageToken must be the nextPageToken of an earlier answer");
      const rest = all.slice(before + 1);
      const page = request.pageSize === 0 ? rest : rest.slice(0, request.pageSize);
      const nextPageToken = page.length < rest.length ? page.at(-1)?.id : "";
      return { configs: page.map(jsonOf), nextPageToken };
    },
    async DeleteTaskPushNotificationConfig(params, ownRun) {
      const { taskId, id } = DeleteTaskPushNotificationConfigRequest.fromJSON(fieldsOf(params));
      const { runId } = await ownRun(taskId);
      await engine.commit((unit) => deletePushConfig(unit.tx, runId, id));
      return null;
    },
  };
}
