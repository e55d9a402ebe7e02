// Runs in vitest's own process before the deep tests. All their random choices depend on one seed, which is
// printed, so that a run can be repeated.

export default function setup(): void {
  // Test processes inherit this variable.
  process.env.PARLEY_SEED ??= String(Date.now());
  console.log(`The same random choices again: PARLEY_SEED=${process.env.PARLEY_SEED} npm run test:deep`);
}
