// A load as long as one likes. Prints the figures; judges nothing.

import { clusterGround, EMBEDDED } from "../tests/kit/grounds.ts";
import { runLoad } from "../tests/kit/load-run.ts";
import { startPostgres } from "../tests/kit/postgres-server.ts";
import { orEnd, readNumber, typed } from "../tests/kit/typed.ts";
import { machine } from "./measure.ts";

const USAGE = `npm run load -- [options]
  --minutes N     (default 10)
  --clients N     (default 1000)
  --sessions N    (default 200)
  --piece MS      between two pieces of an answer (default 500)
  --heap MB       what the runtime may keep; unset, it decides
  --cluster       three processes over one PostgreSQL, started for it
  --database URL  the same, on this server
  --processes N   so many instead
  --seed S`;

const values = typed(USAGE, {
  minutes: { type: "string", default: "10" },
  clients: { type: "string", default: "1000" },
  sessions: { type: "string", default: "200" },
  piece: { type: "string", default: "500" },
  heap: { type: "string" },
  processes: { type: "string" },
  cluster: { type: "boolean", default: false },
  database: { type: "string" },
  seed: { type: "string", default: String(Date.now()) },
});
const numbers = orEnd(USAGE, () => ({
  seconds: readNumber("--minutes", values.minutes, 0) * 60,
  clients: readNumber("--clients", values.clients, 1),
  sessions: readNumber("--sessions", values.sessions, 1),
  pieceMs: readNumber("--piece", values.piece, 0),
  ...(values.heap === undefined ? {} : { heapMb: readNumber("--heap", values.heap, 1) }),
  ...(values.processes === undefined ? {} : { processes: readNumber("--processes", values.processes, 1) }),
}));

const isCluster = values.cluster || values.database !== undefined;
const server = isCluster && values.database === undefined ? await startPostgres() : undefined;
const address = values.database ?? server?.url ?? "";
const ground = isCluster ? clusterGround(async () => address) : EMBEDDED;
const { processes = ground.processes } = numbers;
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
await server?.end();
process.exit(0);
