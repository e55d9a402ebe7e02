// Signal as a place where an agent asks its owner.

import type { Place } from "../../channels/approvals-kit.ts";
import { ADA, dataOf, from, OWN, signalAccount } from "../../kit/platforms/signal-people.ts";
import { startSignalServer } from "../../kit/platforms/signal-server.ts";

export async function openPlace(): Promise<Place> {
  const server = await startSignalServer({ accounts: [OWN] });
  const bob = { number: "+491700000003", aci: "33333333-3333-4333-8333-333333333333" };
  return {
    account: signalAccount(server.url),
    ids: { ada: ADA.number, bob: bob.number },
    isReady: () => server.listeners() === 1,
    says(id, text) {
      const dataMessage = dataOf(text);
      const sender = from(id === bob.number ? bob : ADA);
      server.event(OWN.number, { envelope: { ...sender, timestamp: dataMessage.timestamp, dataMessage } });
    },
    seenBy: (id) => server.sent.filter(({ to }) => to === id).map(({ message }) => message),
  };
}
