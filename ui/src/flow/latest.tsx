// Shows a button that leads to the end of a chain. There, the view follows new steps.

export function Latest({ atEnd, toEnd }: { atEnd: boolean; toEnd: () => void }) {
  if (atEnd) return null;
  return (
    <button type="button" class="flow-latest" onClick={toEnd}>
      Latest ↓
    </button>
  );
}
