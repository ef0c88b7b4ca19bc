/** The API as one object, with a method for each operation. */

import { ApiError, type Request, type RequestOptions, send } from "./requests.js";
import { routes } from "./routes.js";
import type { components, operations } from "./schema.js";

type Name = keyof typeof routes;
type Operation<N extends Name> = operations[(typeof routes)[N]["operation"]];
type Items<N extends Name> = (typeof routes)[N]["items"];

type Part<T> = [NonNullable<T>] extends [never] ? unknown : NonNullable<T>;
type Body<T> = T extends { requestBody?: { content: { "application/json": infer B } } } ? B : unknown;
type Parameters<T> = T extends { parameters: { query?: infer Q; path?: infer P } } ? Part<Q> & Part<P> : unknown;

/** The arguments of an operation: those of its path, query and body in one object. */
export type Input<N extends Name> = Parameters<Operation<N>> & Body<Operation<N>>;

type Content<T> = T extends { content: { "application/json": { data: infer D } } }
  ? D
  : T extends { content: { "text/calendar": infer C } } ? C : never;
type Successes<T> = T extends { responses: infer R } ? R[keyof R & (200 | 202)] : never;

/** The result of an operation: `data` of its response. */
export type Data<N extends Name> = Content<Successes<Operation<N>>>;

type Item<N extends Name> = Items<N> extends keyof Data<N> ? (Data<N>[Items<N>] extends (infer I)[] ? I : never) : never;
/** Await it for one page, or iterate over it for the records of this and all further pages. */
type Result<N extends Name> = Promise<Data<N>> & (Items<N> extends string ? AsyncIterable<Item<N>> : unknown);

type Method<N extends Name> = {} extends Input<N>
  ? (input?: Input<N>, options?: RequestOptions) => Result<N>
  : (input: Input<N>, options?: RequestOptions) => Result<N>;
type Methods = { [N in Name]: Method<N> };

type File = components["schemas"]["File"];
export type ChatMessage = components["schemas"]["ChatRequest"];
export type ChatEvent = components["schemas"]["ChatEvent"];

export interface Settings extends Pick<RequestOptions, "timeout" | "maxRetries" | "headers"> {
  /** The address of the service, such as `https://api.example.com`. */
  baseUrl: string;
  /** A secret: keep it on a server. Public operations and the chat need none. */
  apiKey?: string | undefined;
  /** A replacement of `fetch`. */
  fetch?: typeof fetch | undefined;
}

const LARGEST_DIRECT = 4_000_000; // Bytes. Larger files are uploaded in two steps.

export interface WorkspaceApi extends Methods {}

/** The operations of the API, each with its name in the reference: `create_product` is `createProduct`. */
export class WorkspaceApi {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
    for (const name of Object.keys(routes) as Name[]) {
      const method = (input = {}, options = {}) => this.#result(name, input, options);
      Object.defineProperty(this, name, { value: method, writable: true });
    }
  }

  /** Upload a file of up to 20 MB, in two steps if it has more than 4 MB. */
  async upload(
    { name, content, folderId }: { name: string; content: Blob | Uint8Array<ArrayBuffer> | string; folderId?: string | undefined },
    options: RequestOptions = {},
  ): Promise<File> {
    const blob = new Blob([content]);
    if (blob.size <= LARGEST_DIRECT) {
      const body = new FormData();
      body.set("file", blob, name);
      if (folderId) body.set("folderId", folderId);
      const request = this.#request("POST", "/api/files/upload", { body, takesKey: true }, options);
      return (await this.#send(request, options, data<Data<"uploadFile">>)).file;
    }
    const place = folderId ? { folderId } : {};
    const { upload } = await this.createUpload({ name, size: blob.size, ...place }, options);
    const sent = { url: new URL(upload.url), method: upload.method, headers: new Headers(), body: blob, isRepeatable: true };
    await this.#send(sent, options, (response) => response.arrayBuffer());
    return (await this.completeUpload({ id: upload.id }, options)).file;
  }

  /**
   * Send a message to a bot, and receive its answer in events.
   *
   * The first event is `start`, the last one `done` or `error`. An answer that ends without them throws. `timeout`
   * ends before the first event.
   */
  async *chat(message: ChatMessage, options: RequestOptions = {}): AsyncGenerator<ChatEvent, void> {
    const body = JSON.stringify(message);
    const request = this.#request("POST", "/api/agents/public/chat-stream", { body, takesKey: true }, options);
    const response = await this.#send(request, options, (response) => response);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    try {
      for (let rest = "", type = ""; ; ) {
        const { done, value } = await reader.read();
        if (done && type !== "done" && type !== "error") throw new Error("The answer was cut off.");
        if (done) return;
        const lines = (rest + value).split("\n");
        rest = lines.pop()!;
        for (const line of lines.filter((one) => one.startsWith("data: "))) {
          const event: ChatEvent = JSON.parse(line.slice(6));
          ({ type } = event);
          yield event;
        }
      }
    } finally {
      await reader.cancel();
    }
  }

  #result(name: Name, input: Record<string, unknown>, options: RequestOptions): Promise<any> {
    const result = this.#call(name, input, options);
    const iterate = () => this.#items(name, input, options, result);
    return routes[name].items === undefined ? result : Object.assign(result, { [Symbol.asyncIterator]: iterate });
  }

  async #call(name: Name, input: Record<string, unknown>, options: RequestOptions): Promise<any> {
    const { method, path, takesKey, isRepeatable } = routes[name];
    const given = Object.entries(input).filter(([, value]) => value !== undefined);
    const places = new Set(Array.from(path.matchAll(/{(\w+)}/g), ([, place]) => place));
    const filled = path.replace(/{(\w+)}/g, (_, place: string) => segment(place, input[place]));
    const rest = given.filter(([field]) => !places.has(field));
    const sent = method === "GET" || method === "DELETE"
      ? { query: new URLSearchParams(rest.filter(([, value]) => value !== null).map(([key, value]) => [key, String(value)])) }
      : { body: JSON.stringify(Object.fromEntries(rest)) };
    const request = this.#request(method, filled, { ...sent, takesKey, isRepeatable }, options);
    return this.#send(request, options, data<any>);
  }

  async *#items(name: Name, input: Record<string, unknown>, options: RequestOptions, first: Promise<any>) {
    for (let page = Number(input["page"] ?? 1), result = first; ; page++) {
      const list = await result;
      const records: unknown[] = list[routes[name].items!];
      yield* records;
      if (!records.length || page * list.pagination.size >= list.total) return;
      result = this.#call(name, { ...input, page: page + 1 }, options);
    }
  }

  #request(
    method: string,
    path: string,
    call: { body?: string | FormData; query?: URLSearchParams; takesKey: boolean; isRepeatable?: boolean },
    options: RequestOptions,
  ): Request {
    const { body, query, takesKey, isRepeatable = takesKey } = call;
    const { baseUrl, apiKey, headers } = this.#settings;
    const url = new URL(baseUrl.replace(/\/+$/, "") + path);
    if (query) url.search = query.toString();
    const sent = new Headers(headers);
    for (const [name, value] of Object.entries(options.headers ?? {})) sent.set(name, value);
    if (apiKey) sent.set("Authorization", `Bearer ${apiKey}`);
    const key = options.idempotencyKey ?? sent.get("Idempotency-Key") ?? newKey();
    if (takesKey) sent.set("Idempotency-Key", key);
    if (typeof body === "string") sent.set("Content-Type", "application/json");
    return { url, method, headers: sent, ...(body === undefined ? {} : { body }), isRepeatable };
  }

  #send<T>(request: Request, options: RequestOptions, read: (response: Response) => T | Promise<T>): Promise<T> {
    const { fetch: other, timeout, maxRetries } = this.#settings;
    return send(
      request,
      {
        fetch: other ?? ((...call) => fetch(...call)),
        signal: options.signal,
        timeout: options.timeout ?? timeout,
        maxRetries: options.maxRetries ?? maxRetries,
      },
      read,
    );
  }
}

async function data<T>(response: Response): Promise<T> {
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("text/calendar")) return (await response.text()) as T;
  if (type.includes("json")) return (await response.json()).data;
  const message = `The response has the type "${type}" instead of JSON. Check baseUrl.`;
  throw new ApiError(response.status, { message }, response.headers);
}

/** Return a part of a path. URL removes empty parts and dots, and would thereby name another operation. */
function segment(name: string, value: unknown): string {
  const text = String(value ?? "");
  if (["", ".", ".."].includes(text)) throw new TypeError(`${name}: expected an id, received "${text}".`);
  return encodeURIComponent(text);
}

function newKey(): string {
  // Pages by HTTP have no randomUUID.
  return crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16)).join("-");
}
