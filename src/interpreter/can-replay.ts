/** What makes a second run differ from the first: clocks, entropy, identities, other threads, what lies about in directories. Fixed seeds make `random` and `np.random` safe. */
const unstable: readonly RegExp[] = [
  /\b(now|today|utcnow|time|gmtime|localtime|ctime|times|getrusage|getloadavg|clock_gettime|id|hash)\s*\(/,
  /\b(time_ns|perf_counter|monotonic|process_time|thread_time)/,
  /\b(getmtime|getctime|getatime|st_mtime|st_ctime|st_atime|st_ino|scandir|iterdir|listdir|glob|walk)\b/,
  /\/(proc|dev)\//,
  /["'](now|today)["']/,
  /\b(default_rng|RandomState|SeedSequence)\s*\(\s*\)/,
  /\b(urandom|getrandom|uuid1|uuid4|secrets|SystemRandom|getpid|tempfile|threading|subprocess|multiprocessing|asyncio|fork)\b/,
  /\b(import|from)[ \t][\w \t,.]*\btime\b/,
  /(?<![.\w])(exec|eval|__import__|import_module)\s*\(/, // what they run is not in the text
];

/** Whether running this code again from the same state gives the same state, as far as its text tells. Errs on the side of no. */
export function canReplay(code: string): boolean {
  return !unstable.some((pattern) => pattern.test(code));
}
