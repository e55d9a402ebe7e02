// Signal as a place where an agent asks its owner.

import type { Place } from "../../channels/approvals-kit.ts";
import { ADA, dataOf, from, OWN, signalAccount } from "../../kit/platforms/signal-people.ts";
import { startSignalServer } from "../../kit/platforms/signal-server.ts";

export async function openPlace(): Promise<Place> {
  const server = await startSignalServer({ accounts: [OWN] });
  const bob = { number: "+491700000003", aci: "33333333-3333-4333-8333-333333333333" };
  const say = (quote: object): void => {
    const dataMessage = {
      ...dataOf("read this"),
      quote: { id: 1, text: "a text", attachments: [], ...quote },
    };
    const { timestamp } = dataMessage;
    server.event(OWN.number, { envelope: { ...from(ADA), timestamp, dataMessage } });
  };
  return {
    passedOn: [
      { what: "a quote of the agent", says: () => say({ authorNumber: OWN.number, author: OWN.number }) },
      { what: "a quote of an own text", says: () => say({ authorUuid: ADA.aci, author: ADA.aci }) },
      {
        ...{ what: "a quote of Bob", source: `guest signal:${bob.number}` },
        says: () => say({ authorNumber: bob.number, author: bob.number }),
      },
      { what: "a quote of somebody", source: "forwarded signal", says: () => say({}) },
    ],
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
