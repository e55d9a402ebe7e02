// Runs a load test (tests/kit/load) for any length of time and prints the figures. Asserts nothing.

import { runLoad } from "../tests/kit/load/run.ts";
import { orEnd, readNumber, typed } from "../tests/kit/typed.ts";
import { FLEET_OPTIONS, FLEET_USAGE, fleetGround } from "./fleet-ground.ts";
import { machine } from "./measure.ts";

const USAGE = `npm run load -- [options]
  --minutes N     (default 10)
  --clients N     (default 1000)
  --sessions N    (default 200)
  --piece MS      time between two pieces of an answer (default 500)
  --heap MB       heap limit of Node (default: Node's own)
${FLEET_USAGE}
  --seed S`;

const values = typed(USAGE, {
  minutes: { type: "string", default: "10" },
  clients: { type: "string", default: "1000" },
  sessions: { type: "string", default: "200" },
  piece: { type: "string", default: "500" },
  heap: { type: "string" },
  ...FLEET_OPTIONS,
  seed: { type: "string", default: String(Date.now()) },
});
const numbers = orEnd(USAGE, () => ({
  seconds: readNumber("--minutes", values.minutes, 0) * 60,
  clients: readNumber("--clients", values.clients, 1),
  sessions: readNumber("--sessions", values.sessions, 1),
  pieceMs: readNumber("--piece", values.piece, 0),
  ...(values.heap === undefined ? {} : { heapMb: readNumber("--heap", values.heap, 1) }),
  processes: values.processes === undefined ? undefined : readNumber("--processes", values.processes, 1),
}));

const { ground, processes, end } = await fleetGround({ ...values, processes: numbers.processes });
console.log(
  `${machine()}; ${ground.name}, ${processes} process(es), ${values.minutes} min, seed ${values.seed}`,
);
const figures = await runLoad({
  ...numbers,
  ground,
  processes,
  seed: values.seed,
  report: (line) => console.log(line),
});
console.log(JSON.stringify(figures, null, 2));
await end();
process.exit(0);
