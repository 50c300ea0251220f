/** `take` numbers below `count`, evenly spread, with the first and the last; all of them when they are that few. */
export function* spread(count: number, take: number): Generator<number> {
  if (take >= count) {
    for (let index = 0; index < count; index++) yield index;
    return;
  }
  const step = take > 1 ? (count - 1) / (take - 1) : 0;
  for (let number = 0; number < take; number++) yield Math.floor(number * step + 1e-9);
}
