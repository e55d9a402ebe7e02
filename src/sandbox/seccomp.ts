// Owns the system calls that no contained program may make, as a filter program for the kernel.
// SC1: what is refused answers ENOSYS, as an older kernel would, so that programs take their other way.
// SC2: calls of a foreign architecture are refused whole, so that no second table of numbers goes round it.
// Refused: memory that no process owns and no limit counts (memfd, System V segments and queues), the key
// rings (they are not in any namespace), and wide doors into the kernel that ordinary programs don't need.

interface Machine {
  /** AUDIT_ARCH_… */
  readonly audit: number;
  readonly refused: readonly number[];
}

const X64: Machine = {
  audit: 0xc000003e,
  refused: [
    29, // shmget
    68, // msgget
    248, // add_key
    249, // request_key
    250, // keyctl
    298, // perf_event_open
    319, // memfd_create
    321, // bpf
    323, // userfaultfd
    425, // io_uring_setup
    447, // memfd_secret
  ],
};

const ARM64: Machine = {
  audit: 0xc00000b7,
  refused: [194, 186, 217, 218, 219, 241, 279, 280, 282, 425, 447],
};

const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const ANSWER_ENOSYS = 0x00050000 | 38;
/** Numbers from here on are the x32 table of the same architecture. */
const X32_FIRST = 0x40000000;
const NUMBER_OFFSET = 0;
const ARCHITECTURE_OFFSET = 4;

function instruction(code: number, value: number, whenTrue = 0, whenFalse = 0): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(whenTrue, 2);
  bytes.writeUInt8(whenFalse, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}

/** The filter for a machine (`process.arch`); undefined where we know no numbers, and then there is none. */
export function seccompFilter(arch: string): Buffer | undefined {
  const machine = { x64: X64, arm64: ARM64 }[arch];
  if (machine === undefined) return undefined;
  const { audit, refused } = machine;
  const program = [
    instruction(LOAD, ARCHITECTURE_OFFSET),
    instruction(JUMP_EQUAL, audit, 1),
    instruction(RETURN, ANSWER_ENOSYS),
    instruction(LOAD, NUMBER_OFFSET),
    // Jumps count the instructions between here and the last one, which refuses.
    instruction(JUMP_AT_LEAST, X32_FIRST, refused.length + 1),
    ...refused.map((number, index) => instruction(JUMP_EQUAL, number, refused.length - index)),
    instruction(RETURN, ALLOW),
    instruction(RETURN, ANSWER_ENOSYS),
  ];
  return Buffer.concat(program);
}
