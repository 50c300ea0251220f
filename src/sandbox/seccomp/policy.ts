/**
 * The seccomp list of all drivers, as data: these system calls are allowed, all others fail with an errno.
 * It contains only what CPython 3.13, numpy, pandas, scipy, matplotlib, pyarrow, asyncio, threads, subprocess and multiprocessing need. A missing call
 * causes an OSError in user code; a needless one exposes more of the host's kernel to attacks.
 */

/** Holds if `(argument & mask) === value`. Use 32-bit masks for `int` parameters, because the kernel ignores their upper bits. */
export interface ArgumentCondition {
  readonly index: number;
  readonly mask: number;
  readonly value: number;
}

interface AllowedCalls {
  readonly names: readonly string[];
  /** The call is allowed if all conditions of at least one group hold. Without groups, any arguments are allowed. */
  readonly when?: readonly (readonly ArgumentCondition[])[];
}

export interface SeccompPolicy {
  readonly defaultErrno: number;
  readonly allowed: readonly AllowedCalls[];
  readonly refused: readonly { readonly names: readonly string[]; readonly errno: number }[];
}

const EPERM = 1;
const ENOSYS = 38;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. Only clone3 and unshare accept NEWTIME. */
const CLONE_NEW_ANY = 0x7e020000;
const AF_UNIX = 1;
const S_IFMT = 0o170000;
const S_IFIFO = 0o010000;

const files: readonly string[] = [
  "open openat openat2 creat close close_range read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 lseek",
  "stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat getdents getdents64 getcwd chdir fchdir umask",
  "mkdir mkdirat rmdir rename renameat renameat2 link linkat unlink unlinkat symlink symlinkat",
  "chmod fchmod fchmodat chown fchown lchown fchownat utime utimes utimensat futimesat truncate ftruncate fallocate",
  "fsync fdatasync sync_file_range dup dup2 dup3 pipe pipe2 sendfile copy_file_range readahead fadvise64",
  "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr",
].flatMap(words);

const memory: readonly string[] = words(
  "brk mmap munmap mprotect mremap msync madvise mlock mlock2 munlock mlockall munlockall memfd_create membarrier get_mempolicy",
);

const waiting: readonly string[] = [
  "select pselect6 poll ppoll eventfd eventfd2",
  "timerfd_create timerfd_settime timerfd_gettime signalfd signalfd4 futex futex_waitv",
  "nanosleep clock_nanosleep alarm pause getitimer setitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete",
  "time gettimeofday clock_gettime clock_getres times",
].flatMap(words);

const processes: readonly string[] = [
  "fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open pidfd_send_signal",
  "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack restart_syscall",
  "getpid getppid gettid getpgid getpgrp setpgid getsid setsid getuid geteuid getgid getegid getgroups getresuid getresgid capget",
  "set_tid_address set_robust_list rseq arch_prctl getrlimit setrlimit prlimit64 getrusage getpriority setpriority",
  "sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval",
  "getcpu getrandom uname sysinfo",
].flatMap(words);

/** Calls on existing sockets: the worker's own and socketpairs. Sockets cannot be created, bound, connected or accepted. */
const openSockets: readonly string[] = words("sendto recvfrom sendmsg recvmsg shutdown getsockname getpeername getsockopt");

/** No filters (SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_LOCK_FILTER), which run in the kernel, and nothing else that sandboxes have no use for. */
const socketOptions: Readonly<Record<string, number>> = {
  SO_SNDBUF: 7,
  SO_RCVBUF: 8,
  SO_PASSCRED: 16,
  SO_RCVTIMEO_OLD: 20,
  SO_SNDTIMEO_OLD: 21,
  SO_RCVTIMEO_NEW: 66,
  SO_SNDTIMEO_NEW: 67,
};
const SOL_SOCKET = 1;

/**
 * No leases (F_SETLEASE), which can hang a process that opens the file, no notifications about directories (F_NOTIFY), no choice of signal or owner (F_SETSIG,
 * F_SETOWN), no larger pipes (F_SETPIPE_SZ), which are counted per user, and no locks of open file descriptions. Locks of processes stay: sqlite needs them.
 */
const descriptorControls: Readonly<Record<string, number>> = {
  F_DUPFD: 0,
  F_GETFD: 1,
  F_SETFD: 2,
  F_GETFL: 3,
  F_SETFL: 4,
  F_GETLK: 5,
  F_SETLK: 6,
  F_SETLKW: 7,
  F_DUPFD_CLOEXEC: 1030,
  F_GETPIPE_SZ: 1032,
  F_ADD_SEALS: 1033,
  F_GET_SEALS: 1034,
};

const terminalAndFileControls: Readonly<Record<string, number>> = {
  TCGETS: 0x5401, // isatty
  TIOCGWINSZ: 0x5413, // os.get_terminal_size
  FIONREAD: 0x541b,
  FIONBIO: 0x5421,
  FIONCLEX: 0x5450,
  FIOCLEX: 0x5451,
};

const processControls: Readonly<Record<string, number>> = {
  PR_SET_PDEATHSIG: 1,
  PR_GET_PDEATHSIG: 2,
  PR_GET_DUMPABLE: 3,
  PR_SET_DUMPABLE: 4, // the monitor protects itself from its children with it
  PR_SET_NAME: 15,
  PR_GET_NAME: 16,
  PR_GET_SECCOMP: 21,
  PR_CAPBSET_READ: 23,
  PR_GET_SECUREBITS: 27,
  PR_SET_TIMERSLACK: 29,
  PR_GET_TIMERSLACK: 30,
  PR_SET_CHILD_SUBREAPER: 36,
  PR_GET_CHILD_SUBREAPER: 37,
  PR_SET_NO_NEW_PRIVS: 38,
  PR_GET_NO_NEW_PRIVS: 39,
  PR_SET_THP_DISABLE: 41,
  PR_GET_THP_DISABLE: 42,
  PR_SET_VMA: 0x53564d41, // allocators name their mappings
};

const PERSONALITY_LINUX = 0;
const PERSONALITY_QUERY = 0xffffffff;

export const seccompPolicy: SeccompPolicy = Object.freeze({
  defaultErrno: EPERM,
  allowed: [
    { names: files },
    { names: memory },
    { names: waiting },
    { names: processes },
    { names: openSockets },
    { names: ["fcntl"], when: Object.values(descriptorControls).map((command) => [int(1, command)]) },
    { names: ["setsockopt"], when: Object.values(socketOptions).map((option) => [int(1, SOL_SOCKET), int(2, option)]) },
    { names: ["clone"], when: [[{ index: 0, mask: CLONE_NEW_ANY, value: 0 }]] },
    { names: ["socketpair"], when: [[int(0, AF_UNIX)]] },
    { names: ["mknod"], when: [[{ index: 1, mask: S_IFMT, value: S_IFIFO }]] },
    { names: ["mknodat"], when: [[{ index: 2, mask: S_IFMT, value: S_IFIFO }]] },
    { names: ["ioctl"], when: Object.values(terminalAndFileControls).map((command) => [int(1, command)]) },
    { names: ["prctl"], when: Object.values(processControls).map((option) => [int(0, option)]) },
    { names: ["personality"], when: [[int(0, PERSONALITY_LINUX)], [int(0, PERSONALITY_QUERY)]] },
  ],
  refused: [
    // A filter cannot check its flags, because they are behind a pointer. On ENOSYS, glibc falls back to clone; on EPERM it would give up.
    { names: ["clone3"], errno: ENOSYS },
    // A lock on a file of the snapshot would be a signal to other sandboxes. Libraries take ENOSYS as a file system without locks.
    { names: ["flock"], errno: ENOSYS },
  ],
});

const epoll: readonly string[] = words("epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2");

/**
 * The same for a process of Node.js, which cannot work without epoll. Sandboxes on the host's kernel do without it: its watches are counted per user, and a
 * host of the same user would abort when there are none left.
 */
export const nodeSeccompPolicy: SeccompPolicy = Object.freeze({ ...seccompPolicy, allowed: [...seccompPolicy.allowed, { names: epoll }] });

/** The same for sandboxes with a kernel of their own, where watches and locks reach no neighbour. */
export const ownKernelSeccompPolicy: SeccompPolicy = Object.freeze({
  ...seccompPolicy,
  allowed: [...nodeSeccompPolicy.allowed, { names: ["flock"] }],
  refused: seccompPolicy.refused.filter(({ names }) => !names.includes("flock")),
});

function int(index: number, value: number): ArgumentCondition {
  return { index, mask: 0xffffffff, value };
}

function words(text: string): string[] {
  return text.split(" ");
}
