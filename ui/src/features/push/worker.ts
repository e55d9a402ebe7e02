// The service worker that shows notifications, also while no page is open, and sends the answers of their
// buttons. It has no token of the gateway: a button has one for one decision.

interface Notice {
  readonly tag: string;
  readonly title: string;
  readonly body: string;
  readonly kind: "permission" | "failure" | "question" | "test";
  readonly answers: readonly { readonly decision: string; readonly token: string; readonly title: string }[];
}

interface Page {
  readonly url: string;
  readonly focused: boolean;
  focus(): Promise<unknown>;
  postMessage(message: object): void;
}

type Waits = Event & { waitUntil(work: Promise<unknown>): void };
type Pushed = Waits & { readonly data: { json(): Notice } };
type Clicked = Waits & { readonly action: string; readonly notification: Notification };

/** The parts of a service worker's scope that are used here. The types of the page lack them. */
interface Scope {
  readonly registration: {
    showNotification(title: string, options: NotificationOptions & { actions?: object[] }): Promise<void>;
  };
  readonly clients: {
    matchAll(options: object): Promise<Page[]>;
    openWindow(url: string): Promise<unknown>;
  };
  addEventListener(name: "push", listener: (event: Pushed) => void): void;
  addEventListener(name: "notificationclick", listener: (event: Clicked) => void): void;
}

const scope = globalThis as unknown as Scope;

async function pages(): Promise<Page[]> {
  const all = await scope.clients.matchAll({ type: "window", includeUncontrolled: true });
  return all.filter(({ url }) => new URL(url).pathname === "/");
}

function show(notice: Notice, isNews: boolean): Promise<void> {
  const { title, body, tag, kind, answers } = notice;
  return scope.registration.showNotification(title, {
    ...{ body, tag, icon: "/icon.svg", data: notice },
    silent: !isNews,
    requireInteraction: isNews && kind === "permission",
    actions: answers.map(({ decision, title: words }) => ({ action: decision, title: words })),
  });
}

/** Silently if a page with the focus shows it. Some browsers end a subscription that shows nothing. */
async function tell(notice: Notice): Promise<void> {
  const isSeen = notice.kind !== "test" && (await pages()).some(({ focused }) => focused);
  await show(notice, !isSeen);
}

/** Sends an answer, and says what has become of it, in place of the notification. */
async function answer(notice: Notice, { decision, token }: Notice["answers"][number]): Promise<void> {
  const request = { method: "POST", headers: { "content-type": "application/json" } };
  try {
    const answered = await fetch("/push/answer", { ...request, body: JSON.stringify({ token }) });
    const { error } = (await answered.json()) as { error?: { message: string } };
    const title = decision === "allow" ? "Allowed" : "Denied";
    const told = error === undefined ? { title } : { title: "Not answered", body: error.message };
    await show({ ...notice, ...told, answers: [] }, error !== undefined);
  } catch {
    // The buttons stay, so that the person can press again.
    await show({ ...notice, title: "The gateway did not answer. Try again" }, true);
  }
}

async function open({ tag }: Notice): Promise<void> {
  const address = `#/inbox?at=${encodeURIComponent(tag)}`;
  const [page] = await pages();
  if (page === undefined) return void (await scope.clients.openWindow(`/${address}`));
  page.postMessage({ open: address });
  await page.focus();
}

scope.addEventListener("push", (event) => event.waitUntil(tell(event.data.json())));
scope.addEventListener("notificationclick", (event) => {
  const notice = event.notification.data as Notice;
  const pressed = notice.answers.find(({ decision }) => decision === event.action);
  event.notification.close();
  event.waitUntil(pressed === undefined ? open(notice) : answer(notice, pressed));
});

export {};
