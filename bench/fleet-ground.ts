// Starts gateway processes for the programs in this folder: one with its own database file, or, with
// `--cluster`, three over one PostgreSQL server. `--database URL` names that server; otherwise one is
// started.

import { clusterGround, EMBEDDED, type Ground } from "../tests/kit/process/grounds.ts";
import { startPostgres } from "../tests/kit/store/postgres-server.ts";

export const FLEET_OPTIONS = {
  processes: { type: "string" },
  cluster: { type: "boolean", default: false },
  database: { type: "string" },
} as const;

export const FLEET_USAGE = `  --cluster       start three processes and a PostgreSQL server
  --database URL  start three processes on this PostgreSQL server
  --processes N   number of processes`;

interface Asked {
  readonly processes: number | undefined;
  readonly cluster: boolean;
  readonly database?: string | undefined;
}

export interface FleetGround {
  readonly ground: Ground;
  readonly processes: number;
  end(): Promise<void>;
}

export async function fleetGround({ processes, cluster, database }: Asked): Promise<FleetGround> {
  const server = cluster && database === undefined ? await startPostgres() : undefined;
  const address = database ?? server?.url;
  const ground = address === undefined ? EMBEDDED : clusterGround(async () => address);
  return {
    ground,
    processes: processes ?? ground.processes,
    end: async () => server?.end(),
  };
}
