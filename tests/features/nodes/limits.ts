// The limit of pairing requests, for the tests of limits that two transactions reach at the same time.

import type { Engine } from "../../../src/engine/engine.ts";
import { PAIR_REQUESTS_PER_TOKEN_MAX } from "../../../src/features/nodes/node.ts";
import { admitDevice } from "../../../src/features/nodes/pairing.ts";
import type { Add } from "../../flows/add-row.ts";

const device: Add = async (app, at, then) => {
  const commit: Engine["commit"] = (work) =>
    app.engine.commit(async (unit) => {
      const done = await work(unit);
      await then(unit);
      return done;
    });
  const facts = { name: "phone", platform: "test", version: "1", caps: [], commands: [] };
  const shown = {
    ...facts,
    id: String(at).padStart(64, "0"),
    publicKey: "k",
    remote: "127.0.0.1",
    askedBy: "t",
  };
  const engine: Engine = Object.assign(Object.create(app.engine), { commit });
  const met = await admitDevice({ ...app, engine }, shown, { owner: "p", connId: `c ${at}` });
  return !met.ok && met.details?.pairing !== undefined;
};

export const limits = [
  ["devices of a token that wait to be paired", PAIR_REQUESTS_PER_TOKEN_MAX, device],
] as const;
