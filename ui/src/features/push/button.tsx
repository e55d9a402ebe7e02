// The button that subscribes this browser to notifications, and ends that. It replaces the button for
// notifications of the open page. Also takes the reader to the item of a notification, whose id is in the
// address.

import { useEffect, useState } from "preact/hooks";
import { ask } from "../../gateway.ts";
import { groups, leaveNotify, notify } from "../../inbox/model.ts";
import { Button } from "../../parts/button.tsx";
import { complain, say } from "../../parts/notices.tsx";
import { useReading } from "../../parts/reading.ts";
import { go } from "../../route.ts";

const WORKER = "/push-worker.js";
/** The worker controls no page: none has an address below this. */
const SCOPE = "/push/";

interface Policy {
  createScriptURL(url: string): string;
}
const { trustedTypes } = window as { trustedTypes?: { createPolicy(name: string, rules: Policy): Policy } };
const policy = trustedTypes?.createPolicy("parley", { createScriptURL: () => WORKER });

const findRegistration = () => navigator.serviceWorker.getRegistration(SCOPE);
const findSubscription = async () => (await findRegistration())?.pushManager.getSubscription();

/** Returns the id that the gateway gives to this browser's subscription. */
async function idOf({ endpoint }: PushSubscription): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint)));
  return [...bytes.slice(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns words for this browser, like "Chrome on Android". */
function deviceName(): string {
  const { userAgent } = navigator;
  const [, browser = "Browser"] = /(Firefox|Edg|OPR|Chrome|Safari)\b/.exec(userAgent) ?? [];
  const [, system = "this device"] = /(Android|iPhone|iPad|Windows|Mac OS|CrOS|Linux)/.exec(userAgent) ?? [];
  const short = { Edg: "Edge", OPR: "Opera" }[browser] ?? browser;
  return `${short} on ${system}`;
}

async function worker(): Promise<ServiceWorkerRegistration> {
  const url = policy?.createScriptURL(WORKER) ?? WORKER;
  const registration = await navigator.serviceWorker.register(url, { scope: SCOPE });
  const starting = registration.installing ?? registration.waiting;
  if (registration.active !== null || starting === null) return registration;
  return new Promise((resolve) => {
    starting.addEventListener("statechange", () => {
      if (starting.state === "activated") resolve(registration);
    });
  });
}

async function subscribe(applicationServerKey: string): Promise<void> {
  const { pushManager } = await worker();
  // A subscription with the key of another store can't be changed.
  await (await pushManager.getSubscription())?.unsubscribe();
  const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
  const { p256dh = "", auth = "" } = subscription.toJSON().keys ?? {};
  await ask("push.subscribe", { endpoint: subscription.endpoint, p256dh, auth, name: deviceName() });
}

async function stop(): Promise<void> {
  const subscription = await findSubscription();
  if (!subscription) return;
  await ask("push.remove", { id: await idOf(subscription) });
  await subscription.unsubscribe();
}

export function PushButton() {
  const { value, again } = useReading("push", async () => {
    const { key, devices } = await ask("push.list", {});
    const subscription = await findSubscription();
    const id = subscription ? await idOf(subscription) : undefined;
    return { key, isOn: devices.some((device) => device.id === id && device.own) };
  });
  const [busy, setBusy] = useState(false);
  const [isImpossible, setImpossible] = useState(false);
  // Moves the focus to the item in the address, once the list has it.
  const shown = groups.value;
  useEffect(() => {
    const id = new URLSearchParams(window.location.hash.split("?")[1]).get("at");
    const row = id === null ? null : document.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"]`);
    if (row === null) return;
    go({ view: "inbox" }, true);
    row.scrollIntoView({ block: "center" });
    row.focus();
  }, [shown]);
  const isTold = value?.isOn === true;
  useEffect(() => {
    // A reader who is notified by the open page keeps that until this device is.
    leaveNotify(isTold || (!isImpossible && notify.peek() !== "on"));
    return () => leaveNotify(false);
  }, [isImpossible, isTold]);
  if (value === undefined || isImpossible) return null;
  const { isOn } = value;
  const turn = async (): Promise<void> => {
    setBusy(true);
    try {
      if (isOn) {
        await stop();
        say("This device is not notified any more.");
      } else if ((await Notification.requestPermission()) === "granted") {
        await subscribe(value.key);
        say("This device is told what needs you, also while the page is closed.");
      } else complain("The browser blocks notifications of this page.");
    } catch (problem) {
      const isPushService = problem instanceof DOMException && problem.name === "AbortError";
      setImpossible(isPushService);
      complain(isPushService ? "This browser reaches no push service." : problem);
    }
    setBusy(false);
    again();
  };
  return (
    <Button
      text={isOn ? "Stop notifying this device" : "Notify this device"}
      data-act=""
      disabled={busy}
      onClick={() => void turn()}
    />
  );
}
