import { seccompPolicy, type ArgumentCondition } from "./policy.ts";

export interface OciSeccomp {
  readonly defaultAction: "SCMP_ACT_ERRNO";
  readonly defaultErrnoRet: number;
  readonly architectures: readonly string[];
  readonly syscalls: readonly OciSyscalls[];
}

export interface OciSyscalls {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ALLOW" | "SCMP_ACT_TRACE";
  readonly args?: readonly OciArgument[];
}

export interface OciArgument {
  readonly index: number;
  readonly value: number;
  readonly valueTwo: number;
  readonly op: "SCMP_CMP_MASKED_EQ";
}

/**
 * The list as `linux.seccomp` of an OCI spec, for `runsc --oci-seccomp`. runsc knows these actions and this operator; it skips names it does not implement,
 * and those stay refused. runsc before 2026 ignores `errnoRet` and would answer EPERM to clone3, after which no thread starts; SCMP_ACT_TRACE without a tracer
 * is ENOSYS by definition, in Linux as in gVisor, and ptrace is refused, so no tracer can come.
 */
export function toOciSeccomp(): OciSeccomp {
  const { defaultErrno, allowed, refused } = seccompPolicy;
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: defaultErrno,
    architectures: ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
    syscalls: [
      ...allowed.flatMap(({ names, when }) => (when ?? [[]]).map((conditions) => allowedCalls(names, conditions))),
      ...refused.map(({ names }) => ({ names, action: "SCMP_ACT_TRACE" as const })),
    ],
  };
}

/** One entry an alternative: two conditions on one argument inside an entry would mean "or", on two arguments "and". */
function allowedCalls(names: readonly string[], conditions: readonly ArgumentCondition[]): OciSyscalls {
  const action = "SCMP_ACT_ALLOW";
  if (conditions.length === 0) return { names, action };
  return {
    names,
    action,
    args: conditions.map(({ index, mask, value }) => ({ index, value: mask, valueTwo: value, op: "SCMP_CMP_MASKED_EQ" })),
  };
}
