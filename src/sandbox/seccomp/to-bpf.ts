import { seccompPolicy, type ArgumentCondition, type SeccompPolicy } from "./policy.ts";
import { syscallNumbers, type SeccompArchitecture } from "./syscall-numbers.ts";

/** Offsets in struct seccomp_data, and opcodes of classic BPF. */
const NUMBER_OFFSET = 0;
const ARCHITECTURE_OFFSET = 4;
const ARGUMENTS_OFFSET = 16;
const LOAD = 0x20;
const AND = 0x54;
const JUMP = 0x05;
const JUMP_EQUAL = 0x15;
const JUMP_GREATER_EQUAL = 0x35;
const RETURN = 0x06;

const KILL_PROCESS = 0x80000000;
const ERRNO = 0x00050000;
const ALLOW = 0x7fff0000;

const auditArchitecture: Readonly<Record<SeccompArchitecture, number>> = { x86_64: 0xc000003e, aarch64: 0xc00000b7 };

interface Instruction {
  readonly code: number;
  readonly ifTrue: number;
  readonly ifFalse: number;
  readonly k: number;
}

/** A range of call numbers with the same answer, from `first` up to the `first` of the next interval. */
interface Interval {
  readonly first: number;
  readonly answer: Answer;
}

interface Answer {
  readonly action: number;
  /** If set, `action` applies only if one of these groups holds; otherwise the default applies. */
  readonly when?: readonly (readonly ArgumentCondition[])[];
}

/**
 * Compiles the policy into a classic BPF program for PR_SET_SECCOMP (struct sock_filter[], little-endian, at most a few hundred instructions).
 * A call of a foreign architecture (int 0x80 on x86_64) kills the process. x32 calls have numbers from 0x40000000 and are refused as unknown.
 * The number is looked up by binary search over intervals, so each call costs about ten instructions.
 */
export function toBpf(architecture: SeccompArchitecture, policy: SeccompPolicy = seccompPolicy): Buffer {
  const program = [
    load(ARCHITECTURE_OFFSET),
    instruction(JUMP_EQUAL, auditArchitecture[architecture], 1, 0),
    instruction(RETURN, KILL_PROCESS),
    load(NUMBER_OFFSET),
    ...search(toIntervals(architecture, policy), policy),
  ];
  return encode(program);
}

function toIntervals(architecture: SeccompArchitecture, policy: SeccompPolicy): Interval[] {
  const refuse: Answer = { action: ERRNO | policy.defaultErrno };
  const answers = new Map<number, Answer>();
  const setAnswer = (names: readonly string[], answer: Answer): void => {
    for (const name of names) {
      const number = syscallNumbers[architecture][name];
      if (number !== undefined) answers.set(number, answer); // some architectures lack some calls
    }
  };
  const allow: Answer = { action: ALLOW };
  for (const { names, when } of policy.allowed) setAnswer(names, when === undefined ? allow : { action: ALLOW, when });
  for (const { names, errno } of policy.refused) setAnswer(names, { action: ERRNO | errno });

  const intervals: Interval[] = [];
  const last = Math.max(...answers.keys());
  for (let number = 0; number <= last + 1; number++) {
    const answer = answers.get(number) ?? refuse;
    const previous = intervals.at(-1);
    if (previous === undefined || !isSameAnswer(previous.answer, answer)) intervals.push({ first: number, answer });
  }
  return intervals;
}

function isSameAnswer(left: Answer, right: Answer): boolean {
  return left.action === right.action && left.when === right.when;
}

/** Binary search. Reaches the right half by an unconditional jump, because conditional jumps are limited to 255 instructions. */
function search(intervals: readonly Interval[], policy: SeccompPolicy): Instruction[] {
  if (intervals.length === 1) return answerWith(intervals[0]!.answer, policy);
  const middle = Math.ceil(intervals.length / 2);
  const left = search(intervals.slice(0, middle), policy);
  const right = search(intervals.slice(middle), policy);
  return [instruction(JUMP_GREATER_EQUAL, intervals[middle]!.first, 0, 1), instruction(JUMP, left.length), ...left, ...right];
}

function answerWith({ action, when }: Answer, { defaultErrno }: SeccompPolicy): Instruction[] {
  if (when === undefined) return [instruction(RETURN, action)];
  return [...when.flatMap((conditions) => alternative(conditions, action)), instruction(RETURN, ERRNO | defaultErrno)];
}

/** Returns `action` if all conditions hold, otherwise continues with the next instruction. */
function alternative(conditions: readonly ArgumentCondition[], action: number): Instruction[] {
  let code = [instruction(RETURN, action)];
  for (const { index, mask, value } of conditions.toReversed()) {
    code = [load(ARGUMENTS_OFFSET + 8 * index), instruction(AND, mask), instruction(JUMP_EQUAL, value, 0, code.length), ...code];
  }
  return code;
}

function load(offset: number): Instruction {
  return instruction(LOAD, offset);
}

function instruction(code: number, k: number, ifTrue = 0, ifFalse = 0): Instruction {
  if (ifTrue > 255 || ifFalse > 255) throw new Error("A conditional jump of the seccomp program is too long.");
  return { code, ifTrue, ifFalse, k };
}

function encode(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [position, { code, ifTrue, ifFalse, k }] of program.entries()) {
    bytes.writeUInt16LE(code, position * 8);
    bytes.writeUInt8(ifTrue, position * 8 + 2);
    bytes.writeUInt8(ifFalse, position * 8 + 3);
    bytes.writeUInt32LE(k >>> 0, position * 8 + 4);
  }
  return bytes;
}
