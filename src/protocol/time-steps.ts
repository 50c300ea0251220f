/** Arithmetic on sorted places in time, in milliseconds since 1970. */

export const DAY = 86_400_000;

/** Sorted, without repetitions and infinities. */
export function distinct(places: readonly number[]): number[] {
  return [...new Set(places.filter(Number.isFinite))].sort((a, b) => a - b);
}

export function differences(numbers: readonly number[]): number[] {
  return numbers.slice(1).map((number, at) => number - numbers[at]!);
}

/** The middle number; of two in the middle, the smaller one. */
export function lowerMedian(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[(numbers.length - 1) >> 1] ?? Number.NaN;
}

export function minimum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.min(a, b), Infinity);
}

export function maximum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.max(a, b), -Infinity);
}

export function spread(numbers: readonly number[]): number {
  return maximum(numbers) - minimum(numbers);
}

/** Never negative, unlike `%`. */
export function modulo(number: number, size: number): number {
  return number - Math.floor(number / size) * size;
}

/** How many of the sorted numbers are at most `limit`. */
export function countUpTo(numbers: readonly number[], limit: number): number {
  let [from, to] = [0, numbers.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (numbers[middle]! <= limit) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** For each flag, how many are true up to it. */
export function countTrue(flags: readonly boolean[]): number[] {
  let count = 0;
  return flags.map((flag) => (count += flag ? 1 : 0));
}

/** How many usual steps the steps are, at least one each. */
export function countSteps(steps: readonly number[], usual: number): number {
  return steps.reduce((sum, step) => sum + Math.max(Math.floor(step / usual + 0.5), 1), 0);
}

export function isWeekday(at: number): boolean {
  return modulo(Math.floor(at / DAY) + 3, 7) < 5;
}

/** The logarithm of the number of ways to choose from `total` things. */
export function logChoices(total: number, chosen: number): number {
  return logFactorial(total) - logFactorial(chosen) - logFactorial(total - chosen);
}

function logFactorial(number: number): number {
  if (number >= 16) return (number + 0.5) * Math.log(number) - number + 0.5 * Math.log(2 * Math.PI) + 1 / (12 * number);
  let factorial = 1;
  for (let factor = 2; factor <= number; factor += 1) factorial *= factor;
  return Math.log(factorial);
}
