// A load as long as one likes: `npm run load -- --minutes 10 [--clients 1000] [--sessions 200] [--seed S]`.
// `--piece MS`: between two pieces of an answer. `--heap MB`: what the runtime may keep; unset, it decides.
// `--cluster`: three processes over one PostgreSQL, started for it, or on the server of `--database URL`.
// Prints the figures; judges nothing.

import { parseArgs } from "node:util";
import { runLoad } from "../tests/kit/load-run.ts";
import { FLEET_OPTIONS, fleetGround } from "./fleet-ground.ts";
import { machine } from "./measure.ts";

const { values } = parseArgs({
  options: {
    ...FLEET_OPTIONS,
    minutes: { type: "string", default: "10" },
    clients: { type: "string", default: "1000" },
    sessions: { type: "string", default: "200" },
    piece: { type: "string", default: "500" },
    heap: { type: "string" },
    seed: { type: "string", default: String(Date.now()) },
  },
});

const { ground, processes, end } = await fleetGround(values);
console.log(
  `${machine()}; ${ground.name}, ${processes} process(es), ${values.minutes} min, seed ${values.seed}`,
);
const figures = await runLoad({
  ground,
  processes,
  seed: values.seed,
  seconds: Number(values.minutes) * 60,
  clients: Number(values.clients),
  sessions: Number(values.sessions),
  pieceMs: Number(values.piece),
  ...(values.heap === undefined ? {} : { heapMb: Number(values.heap) }),
  report: (line) => console.log(line),
});
console.log(JSON.stringify(figures, null, 2));
await end();
process.exit(0);
