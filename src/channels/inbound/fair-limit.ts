// Limits how many tasks run at the same time, and shares the places fairly.
// FL1: one group of tasks never takes all places, so a slow server cannot stop the tasks of other groups.
// FL2: of the waiting tasks that may start, one of the group with the fewest running tasks starts first.

export interface FairLimits {
  /** Maximum number of running tasks: of all, of one account, and of one chat of an account. */
  readonly all: number;
  readonly account: number;
  readonly chat: number;
}

export interface TaskGroup {
  readonly account: string;
  readonly chat: string;
}

interface WaitingTask {
  readonly group: TaskGroup;
  start(): void;
}

/** Returns a function that runs a task when a place for its group is free. */
export function fairLimit(limits: FairLimits): <T>(group: TaskGroup, work: () => Promise<T>) => Promise<T> {
  const running: TaskGroup[] = [];
  const waiting: WaitingTask[] = [];
  const ofAccount = ({ account }: TaskGroup): number =>
    running.filter((one) => one.account === account).length;
  const ofChat = ({ account, chat }: TaskGroup): number =>
    running.filter((one) => one.account === account && one.chat === chat).length;
  const mayStart = (group: TaskGroup): boolean =>
    running.length < limits.all && ofAccount(group) < limits.account && ofChat(group) < limits.chat;
  const startNext = (): void => {
    const ready = waiting.filter(({ group }) => mayStart(group));
    const fewest = Math.min(...ready.map(({ group }) => ofAccount(group)));
    const next = ready.find(({ group }) => ofAccount(group) === fewest);
    if (next === undefined) return;
    waiting.splice(waiting.indexOf(next), 1);
    running.push(next.group);
    next.start();
  };
  return async (group, work) => {
    await new Promise<void>((start) => {
      waiting.push({ group, start });
      startNext();
    });
    try {
      return await work();
    } finally {
      running.splice(running.indexOf(group), 1);
      startNext();
    }
  };
}
