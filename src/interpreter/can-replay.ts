/** What makes a second run differ from the first: clocks, entropy, identities, other threads. Fixed seeds make `random` and `np.random` safe. */
const unstable: readonly RegExp[] = [
  /\b(now|today|utcnow|time|time_ns|perf_counter|monotonic|process_time|gmtime|localtime|id|hash)\s*\(/,
  /["'](now|today)["']/,
  /\b(default_rng|RandomState|SeedSequence)\s*\(\s*\)/,
  /\b(urandom|getrandom|uuid1|uuid4|secrets|SystemRandom|getpid|tempfile|threading|subprocess|multiprocessing|asyncio|fork)\b/,
  /\b(import|from)\s+time\b/,
];

/** Whether running this code again from the same state gives the same state, as far as its text tells. Errs on the side of no. */
export function canReplay(code: string): boolean {
  return !unstable.some((pattern) => pattern.test(code));
}
