/** Returns the known name that was probably meant: equal except for case and separators, or a few typos away. Null if no name is close. */
export function nearestName(wanted: string, known: Iterable<string>): string | null {
  const target = fold(wanted.slice(0, MAX_LENGTH));
  const tolerance = Math.max(1, Math.floor(target.length / 4));
  let best: { name: string; distance: number } | null = null;
  for (const name of known) {
    const candidate = fold(name.slice(0, MAX_LENGTH));
    if (Math.abs(candidate.length - target.length) > tolerance) continue;
    const distance = editDistance(target, candidate);
    if (distance <= tolerance && (best === null || distance < best.distance)) best = { name, distance };
  }
  return best?.name ?? null;
}

/** Only this many characters of a name are compared. */
const MAX_LENGTH = 64;

function fold(name: string): string {
  return name
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[\s_.-]+/g, "_");
}

/** Counts insertions, deletions, replacements, and swaps of adjacent characters (Damerau-Levenshtein). */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let cost = Math.min(replaced, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
