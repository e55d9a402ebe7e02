// Builds the seccomp filter, which refuses system calls that sandboxed programs must not make.
// SC1: a refused call returns ENOSYS, as on an older kernel, so that programs use an alternative.
// Calls with another architecture's numbers are refused, because they would bypass the filter.
// No file may get a setuid or setgid bit: the gateway's user would own the file, and the bit would work
// outside of the sandbox.
// SC4: a socket must have a family that the network namespace isolates. Other families bypass the
// namespace: AF_VSOCK reaches the machine's own host.
// Refused calls: memory that no process owns and no limit counts (memfd; segments, queues and semaphores of
// System V), key rings (no namespace isolates them), the kernel's log, large kernel interfaces that ordinary
// programs do not need, and openat2, whose mode cannot be checked.

interface Guarded {
  readonly number: number;
  /** Index of the argument with the file mode. */
  readonly mode: number;
  /**
   * Index of the argument with the flags of an open call. The mode matters only if the flags create a file.
   */
  readonly flags?: number;
}

interface Machine {
  /** The kernel's constant AUDIT_ARCH_… of the machine. */
  readonly audit: number;
  readonly refused: readonly number[];
  readonly guarded: readonly Guarded[];
  readonly socket: number;
}

const X64: Machine = {
  audit: 0xc000003e,
  refused: [
    29, // shmget
    64, // semget
    68, // msgget
    103, // syslog
    248, // add_key
    249, // request_key
    250, // keyctl
    298, // perf_event_open
    319, // memfd_create
    321, // bpf
    323, // userfaultfd
    425, // io_uring_setup
    437, // openat2
    447, // memfd_secret
  ],
  guarded: [
    { number: 2, mode: 2, flags: 1 }, // open
    { number: 85, mode: 1 }, // creat
    { number: 90, mode: 1 }, // chmod
    { number: 91, mode: 1 }, // fchmod
    { number: 133, mode: 1 }, // mknod
    { number: 257, mode: 3, flags: 2 }, // openat
    { number: 259, mode: 2 }, // mknodat
    { number: 268, mode: 2 }, // fchmodat
    { number: 452, mode: 2 }, // fchmodat2
  ],
  socket: 41,
};

/** Call numbers on ARM64. Calls that do not exist there are missing. */
const ARM64: Machine = {
  audit: 0xc00000b7,
  refused: [194, 190, 186, 116, 217, 218, 219, 241, 279, 280, 282, 425, 437, 447],
  guarded: [
    { number: 33, mode: 2 },
    { number: 52, mode: 1 },
    { number: 53, mode: 2 },
    { number: 56, mode: 3, flags: 2 },
    { number: 452, mode: 2 },
  ],
  socket: 198,
};

const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const ANSWER = 0x00050000;
const EPERM = 1;
const ENOSYS = 38;
/** Call numbers from this one on belong to x32, a second table of the same architecture. */
const X32_FIRST = 0x40000000;
const EAFNOSUPPORT = 97;
/** AF_UNIX, AF_INET, AF_INET6, and AF_NETLINK, which programs use to list network interfaces. */
const FAMILIES = [1, 2, 10, 16];
/** O_CREAT, and the bits of O_TMPFILE without O_DIRECTORY. */
const MAKES_A_FILE = 0o100 | 0o20000000;
const SETUID_OR_SETGID = 0o6000;
const NUMBER_OFFSET = 0;
const ARCHITECTURE_OFFSET = 4;
/** Offset of the lower half of an argument. Flags and modes use only that half. */
const argumentOffset = (index: number): number => 16 + 8 * index;

/** `whenTrue`, `whenFalse`: number of instructions that a jump skips. */
function instruction(code: number, value: number, whenTrue = 0, whenFalse = 0): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(whenTrue, 2);
  bytes.writeUInt8(whenFalse, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}

function guard({ number, mode, flags }: Guarded): Buffer[] {
  const creates =
    flags === undefined
      ? []
      : [
          instruction(LOAD, argumentOffset(flags)),
          instruction(JUMP_ANY_BIT, MAKES_A_FILE, 1, 0),
          instruction(RETURN, ALLOW),
        ];
  const steps = [
    ...creates,
    instruction(LOAD, argumentOffset(mode)),
    instruction(JUMP_ANY_BIT, SETUID_OR_SETGID, 1, 0),
    instruction(RETURN, ALLOW),
    instruction(RETURN, ANSWER | EPERM),
  ];
  return [instruction(JUMP_EQUAL, number, 0, steps.length), ...steps];
}

/**
 * Returns the filter for a machine (`process.arch`), or undefined if its call numbers are unknown. Programs
 * run without a filter then.
 */
export function seccompFilter(arch: string): Buffer | undefined {
  const machine = { x64: X64, arm64: ARM64 }[arch];
  if (machine === undefined) return undefined;
  const socketSteps = [
    instruction(LOAD, argumentOffset(0)),
    ...FAMILIES.flatMap((family) => [instruction(JUMP_EQUAL, family, 0, 1), instruction(RETURN, ALLOW)]),
    instruction(RETURN, ANSWER | EAFNOSUPPORT),
  ];
  return Buffer.concat([
    instruction(LOAD, ARCHITECTURE_OFFSET),
    instruction(JUMP_EQUAL, machine.audit, 1, 0),
    instruction(RETURN, ANSWER | ENOSYS),
    instruction(LOAD, NUMBER_OFFSET),
    instruction(JUMP_AT_LEAST, X32_FIRST, 0, 1),
    instruction(RETURN, ANSWER | ENOSYS),
    ...machine.refused.flatMap((number) => [
      instruction(JUMP_EQUAL, number, 0, 1),
      instruction(RETURN, ANSWER | ENOSYS),
    ]),
    ...machine.guarded.flatMap(guard),
    instruction(JUMP_EQUAL, machine.socket, 0, socketSteps.length),
    ...socketSteps,
    instruction(RETURN, ALLOW),
  ]);
}
