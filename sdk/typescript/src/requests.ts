/** Requests that are repeated as long as a repetition can help and cannot do harm. */

import { version } from "./routes.js";

const LONGEST_WAIT = 60_000; // A longer Retry-After is left to the caller.
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8_000;
const LONGEST_TIMER = 2 ** 31 - 1; // A longer one ends at once, also Infinity.

// Browsers have a User-Agent of their own, and must ask before they send another.
const isOnServer = Boolean((globalThis as any).process?.versions?.node);

export interface RequestOptions {
  /** Ends the call. */
  signal?: AbortSignal | undefined;
  /** Milliseconds that one attempt may take until its response is complete. */
  timeout?: number | undefined;
  /** Attempts after the first one. */
  maxRetries?: number | undefined;
  /** Names the call, for a repetition by another process. By default, each call has a new key. */
  idempotencyKey?: string | undefined;
  headers?: Record<string, string> | undefined;
}

export interface Request {
  url: URL;
  method: string;
  headers: Headers;
  body?: NonNullable<RequestInit["body"]>;
  /** Whether a second execution has the effect of one, so that a call with a lost response is repeated. */
  isRepeatable: boolean;
}

/** The service refused a call or failed. Compare `code`; `message` is for readers. */
export class ApiError extends Error {
  override name = "ApiError";
  /** Names the failure, such as `not_found`. It is empty if something in between responded. */
  readonly code: string;
  /** Says why, if the code has several reasons. */
  readonly key: string | undefined;
  /** Names the call in the service's log. */
  readonly requestId: string | undefined;
  /** The fields that were refused, each with a `key`. */
  readonly errors: { field: string; key: string; message: string }[];

  constructor(
    readonly status: number,
    /** The response's data with everything that the code adds, such as `limit`. */
    readonly data: Record<string, any>,
    readonly headers: Headers,
  ) {
    super(data["message"] ?? `The response has the status ${status}.`);
    this.code = data["code"] ?? "";
    this.key = data["key"];
    this.requestId = data["requestId"] ?? headers.get("x-request-id") ?? undefined;
    this.errors = data["errors"] ?? [];
  }
}

/**
 * Send a request, and return what `read` makes of the response, which is part of the attempt.
 *
 * Throws ApiError, or in the last attempt what `fetch` throws.
 */
export async function send<T>(
  { url, isRepeatable, ...init }: Request,
  { fetch, signal, timeout = 60_000, maxRetries = 2 }: RequestOptions & { fetch: typeof globalThis.fetch },
  read: (response: Response) => T | Promise<T>,
): Promise<T> {
  if (isOnServer && !init.headers.has("User-Agent")) init.headers.set("User-Agent", `workspace-automation-js/${version}`);
  for (let attempt = 0; ; attempt++) {
    let failure: unknown;
    const late = new AbortController();
    const end = () => late.abort(new DOMException("The attempt took too long.", "TimeoutError"));
    const timer = timeout <= LONGEST_TIMER ? setTimeout(end, timeout) : undefined;
    try {
      const response = await fetch(url, { ...init, signal: AbortSignal.any(signal ? [signal, late.signal] : [late.signal]) });
      if (response.ok) return await read(response);
      failure = new ApiError(response.status, await failureData(response), response.headers);
    } catch (error) {
      failure = error;
    } finally {
      clearTimeout(timer);
    }
    const wait = attempt < maxRetries && !signal?.aborted ? pause(failure, isRepeatable, attempt) : undefined;
    if (wait === undefined) throw failure;
    await sleep(wait, signal);
  }
}

async function failureData(response: Response): Promise<Record<string, any>> {
  const text = await response.text();
  try {
    return JSON.parse(text).data ?? {};
  } catch {
    return {}; // A proxy has responded.
  }
}

/** Return the milliseconds until the next attempt, or undefined if there should be none. */
function pause(failure: unknown, isRepeatable: boolean, attempt: number): number | undefined {
  const isRefused = failure instanceof ApiError;
  if (!(isRefused ? helps(failure, isRepeatable) : isRepeatable)) return undefined;
  const asked = isRefused ? askedPause(failure.headers) : NaN;
  if (asked > LONGEST_WAIT) return undefined;
  if (asked >= 0) return asked + Math.random() * 250;
  return Math.min(FIRST_PAUSE * 2 ** attempt, LONGEST_PAUSE) * (1 - Math.random() * 0.25);
}

/** Return the milliseconds of `Retry-After`, which has seconds or, from some proxies, a date. */
function askedPause(headers: Headers): number {
  const asked = headers.get("retry-after") || "none";
  const seconds = Number(asked);
  if (!Number.isNaN(seconds)) return seconds * 1000;
  const now = Date.parse(headers.get("date") ?? ""); // The sender's clock, which may differ from ours.
  return Date.parse(asked) - (now || Date.now());
}

function helps({ status, code }: ApiError, isRepeatable: boolean): boolean {
  if (status === 429) return code === "rate_limited" || code === ""; // It was not executed.
  if (status === 409) return code === "in_progress"; // The first attempt is still running.
  return isRepeatable && (status >= 500 || status === 408) && code !== "not_configured";
}

function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, milliseconds);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}
