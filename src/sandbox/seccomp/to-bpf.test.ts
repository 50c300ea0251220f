import { describe, expect, it } from "vitest";
import { nodeSeccompPolicy, seccompPolicy } from "./policy.ts";
import { syscallNumbers, type SeccompArchitecture } from "./syscall-numbers.ts";
import { toBpf } from "./to-bpf.ts";

const EPERM = 0x00050001;
const ENOSYS = 0x00050026;
const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const audit = { x86_64: 0xc000003e, aarch64: 0xc00000b7, i386: 0x40000003, arm: 0x40000028 };
const architectures: readonly SeccompArchitecture[] = ["x86_64", "aarch64"];

const forbidden =
  "ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd mount umount2 move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr pivot_root chroot " +
  "setns unshare keyctl add_key request_key bpf userfaultfd perf_event_open io_uring_setup io_uring_enter io_uring_register io_setup kexec_load kexec_file_load " +
  "init_module finit_module delete_module open_by_handle_at name_to_handle_at acct swapon swapoff reboot settimeofday clock_settime clock_adjtime adjtimex iopl ioperm " +
  "modify_ldt quotactl quotactl_fd syslog socket connect bind listen accept accept4 setuid setgid setresuid setresgid setreuid setregid setfsuid setgroups capset " +
  "seccomp memfd_secret vmsplice splice tee shmget shmat semget msgget mq_open fanotify_init inotify_init1 sethostname setdomainname vhangup lookup_dcookie " +
  "landlock_create_ruleset mbind move_pages migrate_pages remap_file_pages nfsservctl uselib mincore epoll_create epoll_create1 epoll_ctl epoll_pwait";

describe.each(architectures)("seccomp program for %s", (architecture) => {
  const program = toBpf(architecture);
  const numbers = syscallNumbers[architecture];
  const call = (name: string, ...args: (number | bigint)[]): number =>
    run(program, { arch: audit[architecture], number: numbers[name]!, args: args.map(BigInt) });

  it("allows exactly the listed calls among all possible numbers", () => {
    const allowed = new Set<number>();
    for (const { names } of seccompPolicy.allowed) for (const name of names) if (name in numbers) allowed.add(numbers[name]!);
    for (let number = 0; number < 1024; number++) {
      const conditional = seccompPolicy.allowed.some(({ names, when }) => when && names.some((name) => numbers[name] === number));
      if (conditional) continue;
      const expected = number === numbers["clone3"] || number === numbers["flock"] ? ENOSYS : allowed.has(number) ? ALLOW : EPERM;
      expect([number, run(program, { arch: audit[architecture], number, args: [] })]).toEqual([number, expected]);
    }
  });

  it.each(forbidden.split(" ").filter((name) => name in numbers))("refuses %s", (name) => {
    expect(call(name)).toBe(EPERM);
  });

  it("allows clone for forks and threads and refuses every flag that creates a namespace", () => {
    expect(call("clone", 0x3d0f00)).toBe(ALLOW); // the flags of pthread_create
    expect(call("clone", 0x1200011)).toBe(ALLOW); // the flags of fork
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
      expect(call("clone", flag | 17)).toBe(EPERM);
    expect(call("clone", 0x1_1000_0011n)).toBe(EPERM);
  });

  it("allows only unix socketpairs", () => {
    expect(call("socketpair", 1, 1, 0)).toBe(ALLOW);
    for (const family of [2, 10, 16, 17, 40]) expect(call("socketpair", family, 1, 0)).toBe(EPERM);
  });

  it("allows commands of fcntl for flags, copies, locks of processes and seals, and refuses all others", () => {
    const allowed = new Set([0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032, 1033, 1034]);
    for (let command = 0; command < 2048; command++)
      expect([command, call("fcntl", 3, command, 0)]).toEqual([command, allowed.has(command) ? ALLOW : EPERM]);
    expect(call("fcntl", 3, 0x1_0000_0400n, 0), "F_SETLEASE with upper bits, which the kernel ignores").toBe(EPERM);
  });

  it("allows the options of sockets for buffers, timeouts and credentials, and refuses filters", () => {
    for (const option of [7, 8, 16, 20, 21, 66, 67]) expect(call("setsockopt", 3, 1, option)).toBe(ALLOW);
    for (const option of [26, 27, 32, 33, 44, 50, 51, 52, 60]) expect(call("setsockopt", 3, 1, option)).toBe(EPERM);
    expect(call("setsockopt", 3, 0, 7), "another level").toBe(EPERM);
  });

  it("allows epoll only to processes of Node.js", () => {
    const node = toBpf(architecture, nodeSeccompPolicy);
    const answer = (name: string): number => run(node, { arch: audit[architecture], number: numbers[name]!, args: [0n, 0n, 0n] });
    expect([answer("epoll_create1"), answer("epoll_ctl"), answer("ptrace"), answer("flock")]).toEqual([ALLOW, ALLOW, EPERM, ENOSYS]);
  });

  it("refuses ioctls that write into a terminal, whatever the upper bits are", () => {
    expect(call("ioctl", 0, 0x5401)).toBe(ALLOW);
    for (const command of [0x5412, 0x541c, 0x1_0000_5412n, 0x5414]) expect(call("ioctl", 0, command)).toBe(EPERM);
  });

  it("refuses prctl calls that install filters, change capabilities or allow tracing", () => {
    expect(call("prctl", 15)).toBe(ALLOW);
    for (const option of [22, 24, 28, 35, 47, 0x59616d61]) expect(call("prctl", option)).toBe(EPERM);
  });

  it("allows mknod for fifos and refuses it for devices and sockets", () => {
    expect(call("mknodat", -100, 0, 0o010644)).toBe(ALLOW);
    for (const mode of [0o020666, 0o060666, 0o140666]) expect(call("mknodat", -100, 0, mode)).toBe(EPERM);
  });

  it("kills a process that makes a call of another architecture", () => {
    for (const arch of [audit.i386, audit.arm, architecture === "x86_64" ? audit.aarch64 : audit.x86_64]) {
      expect(run(program, { arch, number: 0, args: [] })).toBe(KILL_PROCESS);
    }
  });

  it("has fewer than 1024 instructions, and its jumps go forward and stay inside", () => {
    const length = program.length / 8;
    expect(length).toBeLessThan(1024);
    for (let at = 0; at < length; at++) {
      const code = program.readUInt16LE(at * 8);
      const far = code === 0x05 ? program.readUInt32LE(at * 8 + 4) : Math.max(program[at * 8 + 2]!, program[at * 8 + 3]!);
      if (code !== 0x06) expect(at + 1 + far).toBeLessThan(length);
    }
    expect(program.readUInt16LE((length - 1) * 8)).toBe(0x06);
  });
});

it("refuses x32 calls on x86_64", () => {
  for (const name of ["read", "openat", "clone", "execve"]) {
    expect(run(toBpf("x86_64"), { arch: audit.x86_64, number: 0x40000000 + syscallNumbers.x86_64[name]!, args: [] })).toBe(EPERM);
  }
});

it("the policy names only calls that at least one architecture has", () => {
  for (const { names } of [...seccompPolicy.allowed, ...seccompPolicy.refused]) {
    for (const name of names) expect(name in syscallNumbers.x86_64 || name in syscallNumbers.aarch64, name).toBe(true);
  }
});

/** Interprets the few BPF instructions in use, like the kernel. */
function run(program: Buffer, { arch, number, args }: { arch: number; number: number; args: bigint[] }): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(arch, 4);
  for (const [index, value] of args.entries()) data.writeBigUInt64LE(BigInt.asUintN(64, value), 16 + 8 * index);
  let accumulator = 0;
  for (let at = 0; ; at++) {
    const code = program.readUInt16LE(at * 8);
    const k = program.readUInt32LE(at * 8 + 4);
    const jump = (taken: boolean): void => {
      at += program[at * 8 + (taken ? 2 : 3)]!;
    };
    if (code === 0x20) accumulator = data.readUInt32LE(k);
    else if (code === 0x54) accumulator = (accumulator & k) >>> 0;
    else if (code === 0x05) at += k;
    else if (code === 0x15) jump(accumulator === k);
    else if (code === 0x35) jump(accumulator >= k);
    else if (code === 0x06) return k;
    else throw new Error(`unexpected code ${code}`);
  }
}
