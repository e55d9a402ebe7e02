import { readFileSync } from "node:fs";
import { onGround } from "./ground.ts";
import { percentile } from "./measure.ts";
import { runsAtOnce } from "./runs.ts";

const cpu = (pid: number): number => {
  const f = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(f[11]) + Number(f[12])) * 10;
};
const [sessions = 16, runs = 2000, ...flags] = process.argv.slice(2);
await onGround({ sessions: Number(sessions), flags: flags as string[] }, async (ground) => {
  const admin = await ground.all();
  const clients = [];
  for (let at = 0; at < Number(sessions); at += 1) clients.push(await ground.of(at));
  await runsAtOnce(clients, 600, admin);
  const c0 = cpu(ground.pid),
    m0 = process.cpuUsage();
  const f = performance.now();
  const { samplesMs, perSecond } = await runsAtOnce(clients, Number(runs), admin);
  const me = process.cpuUsage(m0);
  console.log(
    `n ${samplesMs.length} p50 ${percentile(samplesMs, 0.5).toFixed(1)} ms, ${perSecond.toFixed(0)}/s; gateway cpu ${((cpu(ground.pid) - c0) / samplesMs.length).toFixed(2)} ms/run; client cpu ${((me.user + me.system) / 1000 / samplesMs.length).toFixed(2)}; wall ${(performance.now() - f).toFixed(0)}`,
  );
  for (const c of [...clients, admin]) c.close();
});
