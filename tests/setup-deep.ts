// Runs in vitest's own process before the deep tests: their random choices come from one seed, which it prints, so
// that the same choices can be made again.

export default function setup(): void {
  // The processes of the tests inherit it.
  process.env.PARLEY_SEED ??= String(Date.now());
  console.log(`The same random choices again: PARLEY_SEED=${process.env.PARLEY_SEED} npm run test:deep`);
}
