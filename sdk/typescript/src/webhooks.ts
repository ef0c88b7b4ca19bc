/** Verification of webhooks, which are signed as Standard Webhooks says. */

const PREFIX = "whsec_";
const VERSION = "v1,";

/** What an event says. `docs/webhooks.md` of the service lists the types. */
export interface WebhookEvent {
  /** Such as `lead.created`. New types may be added. */
  type: string;
  timestamp: string;
  data: {
    id: string;
    /** The record as it is when the request is sent; null if it was deleted. */
    object?: Record<string, any> | null;
    /** Where to read a record that is too large for an event. */
    url?: string;
    revision?: number;
    actor?: string;
    [field: string]: unknown;
  };
}

/** A request is not what the service has sent. Respond with 401. */
export class WebhookError extends Error {
  override name = "WebhookError";
}

type GivenHeaders = { get(name: string): string | null } | Record<string, string | string[] | undefined>;

/**
 * Return the event of a request that the service has signed. Throws WebhookError for any other.
 *
 * `body` must be the bytes of the request as received, not parsed and written again. `headers` are those of
 * `fetch`, or an object as Node and API Gateway have it. `secret` is one secret, or several while one is replaced. The time
 * of the attempt may differ by `tolerance` seconds from the clock. Keep the ids of handled events (`webhook-id`):
 * an event can arrive more than once.
 */
export async function verifyWebhook(
  body: string | Uint8Array | ArrayBuffer,
  headers: GivenHeaders,
  secret: string | string[],
  { tolerance = 300 }: { tolerance?: number } = {},
): Promise<WebhookEvent> {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const seconds = /^\d+$/.test(timestamp) ? Number(timestamp) : NaN;
  if (!(Math.abs(Date.now() / 1000 - seconds) <= tolerance)) {
    throw new WebhookError(`webhook-timestamp: expected a time of the last ${tolerance} seconds.`);
  }
  const content = bytesOf(body);
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + content.length);
  signed.set(head);
  signed.set(content, head.length);
  const signatures = header(headers, "webhook-signature").split(" ").filter((one) => one.startsWith(VERSION));
  for (const each of [secret].flat()) {
    const usage = { name: "HMAC", hash: "SHA-256" };
    const secretBytes = bytes(each.replace(PREFIX, ""));
    // An empty key would accept what anybody can sign.
    if (!secretBytes.length) throw new TypeError("secret: expected whsec_ and base64.");
    const key = await crypto.subtle.importKey("raw", secretBytes, usage, false, ["verify"]);
    for (const signature of signatures) {
      const decoded = bytes(signature.slice(VERSION.length));
      if (await crypto.subtle.verify("HMAC", key, decoded, signed)) return JSON.parse(new TextDecoder().decode(content));
    }
  }
  throw new WebhookError("webhook-signature: no signature fits the body and the secret.");
}

function header(headers: GivenHeaders, name: string): string {
  // Not `instanceof`: the classes of undici and node-fetch are others.
  const value = typeof headers["get"] === "function" ? headers["get"](name) : valueOf(headers as Record<string, unknown>, name);
  if (typeof value !== "string") throw new WebhookError(`${name}: expected one header.`);
  return value;
}

function valueOf(headers: Record<string, unknown>, name: string): unknown {
  return Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
}

function bytesOf(body: unknown): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  // Not `instanceof`: under jest, the classes are others.
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]") return new Uint8Array(body as ArrayBuffer);
  throw new TypeError("body: expected the text or bytes as received, before they are parsed.");
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
