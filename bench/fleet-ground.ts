// Starts gateway processes for the programs of this folder: one with its own database file, or, with
// `--cluster`, three over one PostgreSQL server. That server is started for them, or is the one of
// `--database URL`.

import { clusterGround, EMBEDDED, type Ground } from "../tests/kit/process/grounds.ts";
import { startPostgres } from "../tests/kit/store/postgres-server.ts";

export const FLEET_OPTIONS = {
  processes: { type: "string" },
  cluster: { type: "boolean", default: false },
  database: { type: "string" },
} as const;

export const FLEET_USAGE = `  --cluster       three processes over one PostgreSQL, started for it
  --database URL  the same, on this server
  --processes N   so many instead`;

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
