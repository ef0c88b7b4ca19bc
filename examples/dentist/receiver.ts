// A receiver of webhooks, which verifies each request.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { verifyWebhook, WebhookError, type WebhookEvent } from "workspace-automation";

export interface Receiver {
  url: string;
  /** The secret of the webhook, which the response to its creation has. */
  secret: string;
  /** Verified events, each once. */
  events: WebhookEvent[];
  refused: number;
  /** Wait for an event of a type that is about a record. */
  receive(type: string, recordId: string): Promise<WebhookEvent>;
  close(): void;
}

/** Start a receiver on a port of this machine. */
export async function startReceiver(port = 0): Promise<Receiver> {
  const seen = new Map<string, WebhookEvent>();
  const server = createServer(async (request, response) => {
    try {
      const event = await verifyWebhook(await buffer(request), request.headers, receiver.secret);
      const id = String(request.headers["webhook-id"]); // The same at each attempt, so an event counts once.
      if (!seen.has(id)) seen.set(id, event);
      receiver.events = [...seen.values()];
      response.writeHead(204).end();
    } catch (error) {
      if (error instanceof WebhookError) receiver.refused++;
      response.writeHead(error instanceof WebhookError ? 401 : 500).end();
    }
  });
  await new Promise<void>((listening) => server.listen(port, "127.0.0.1", listening));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`,
    secret: "",
    events: [],
    refused: 0,
    async receive(type, recordId) {
      for (const deadline = Date.now() + 120_000; Date.now() < deadline; ) {
        const found = receiver.events.find((event) => event.type === type && event.data.id === recordId);
        if (found) return found;
        await new Promise((resume) => setTimeout(resume, 200));
      }
      throw new Error(`No event ${type} of ${recordId} has arrived.`);
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return receiver;
}
