import { expect, it } from "vitest";
import { ownKernelSeccompPolicy } from "../../seccomp/policy.ts";
import { toOciSeccomp } from "./oci-spec.ts";

it("refuses by default and uses only operators that runsc supports", () => {
  const { defaultAction, syscalls } = toOciSeccomp();
  expect(defaultAction).toBe("SCMP_ACT_ERRNO");
  for (const { args = [] } of syscalls) {
    expect(new Set(args.map(({ index }) => index)).size).toBe(args.length);
    for (const { op } of args) expect(op).toBe("SCMP_CMP_MASKED_EQ");
  }
});

it("allows the same calls as the policy, and conditional ones only with their conditions", () => {
  const { syscalls } = toOciSeccomp();
  const allowed = syscalls.filter(({ action }) => action === "SCMP_ACT_ALLOW");
  expect(new Set(allowed.flatMap(({ names }) => names))).toEqual(new Set(ownKernelSeccompPolicy.allowed.flatMap(({ names }) => names)));
  for (const name of ["clone", "socketpair", "ioctl", "prctl", "personality", "mknodat", "fcntl", "setsockopt"]) {
    expect(allowed.filter(({ names, args }) => names.includes(name) && args === undefined)).toEqual([]);
  }
  expect(syscalls.find(({ names }) => names.includes("clone"))?.args).toEqual([
    { index: 0, value: 0x7e020000, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" },
  ]);
});

it("answers ENOSYS to clone3 through the trace action", () => {
  expect(toOciSeccomp().syscalls.at(-1)).toEqual({ names: ["clone3"], action: "SCMP_ACT_TRACE" });
});
