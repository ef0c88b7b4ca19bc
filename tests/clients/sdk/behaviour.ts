// What the TypeScript package does with responses that a service rarely gives. Run with node --test.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeEach, test } from "node:test";
import { ApiError, type RequestOptions, verifyWebhook, WebhookError, WorkspaceApi } from "workspace-automation";

type Answer = Response | Error;
let waits: number[] = [];
const startTimer = globalThis.setTimeout;
// Pauses end at once. Timeouts of attempts are a minute by default.
const pauseAtOnce = ((run: () => void, milliseconds: number) => {
  if (milliseconds >= 60_000 || milliseconds < 50) return startTimer(run, milliseconds);
  waits.push(milliseconds);
  return startTimer(run, 0);
}) as typeof setTimeout;
beforeEach(() => {
  waits = [];
  globalThis.setTimeout = pauseAtOnce;
});

const success = (data: object) => Response.json({ data: { status: true, ...data } });
const failure = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ data: { status: false, message: code, code, requestId: "r1" } }, { status, headers });

/** An API whose service gives these answers, one to each request. */
function scripted(...answers: Answer[]) {
  const requests: Request[] = [];
  const api = new WorkspaceApi({
    baseUrl: "http://service.test/prod/",
    apiKey: "svc_live_1",
    fetch: async (url, init) => {
      requests.push(new Request(url, { ...init, duplex: "half" } as RequestInit));
      const answer = answers.shift();
      if (answer instanceof Error || answer === undefined) throw answer ?? new Error("One request too many.");
      return answer;
    },
  });
  return { api, requests };
}

const rye = { name: "Rye", price: 24000 };
const product = { product: { id: "1" } };
const keys = (requests: Request[]) => requests.map((request) => request.headers.get("idempotency-key"));

test("a creation is repeated with one key after a lost connection, a 500, a 503 and while it is running", async () => {
  for (const lost of [new TypeError("fetch failed"), failure(500, "internal_error"), failure(503, "unavailable", { "Retry-After": "2" }),
    new Response("<html>", { status: 504 }), new Response(null, { status: 408 }), failure(409, "in_progress"),
    new Response('{"data": {"sta', { headers: { "Content-Type": "application/json" } })]) {
    const { api, requests } = scripted(lost, success(product));
    assert.equal((await api.createProduct(rye)).product.id, "1");
    const [first, second] = keys(requests);
    assert.match(first!, /^[0-9a-f-]{36}$/);
    assert.equal(first, second);
    assert.deepEqual(await requests[1]!.json(), rye);
  }
});

test("each call has another key, and a given key is sent", async () => {
  const { api, requests } = scripted(success(product), success(product), success(product));
  await api.createProduct(rye);
  await api.createProduct(rye);
  await api.createProduct(rye, { idempotencyKey: "mine" });
  assert.equal(new Set(keys(requests)).size, 3);
  assert.equal(keys(requests)[2], "mine");
});

test("a key in the headers of a call is kept", async () => {
  const { api, requests } = scripted(success(product));
  await api.createProduct(rye, { headers: { "idempotency-key": "mine" } });
  assert.deepEqual(keys(requests), ["mine"]);
});

test("a call without a key is repeated if a second execution has the effect of one", async () => {
  for (const lost of [new TypeError("fetch failed"), failure(500, "internal_error"), failure(503, "unavailable")]) {
    const { api, requests } = scripted(lost, success({}));
    await api.setLeadStatus({ id: "1", status: "completed" });
    assert.deepEqual(keys(requests), [null, null]);
  }
});

test("any other call is repeated only if it was not carried out", async () => {
  const hit = { projectId: "1", pageId: "2" }; // Each call counts a visit.
  for (const lost of [new TypeError("fetch failed"), failure(500, "internal_error"), failure(503, "unavailable")]) {
    const { api, requests } = scripted(lost);
    await assert.rejects(api.recordHit(hit));
    assert.deepEqual(keys(requests), [null]);
  }
  const { api, requests } = scripted(failure(429, "rate_limited", { "Retry-After": "1" }), success({}));
  await api.recordHit(hit);
  assert.equal(requests.length, 2);
});

test("no refusal is repeated that a repetition does not change", async () => {
  for (const [status, code] of [[400, "validation_error"], [404, "not_found"], [409, "sku_taken"], [429, "limit_daily"],
    [503, "not_configured"]] as const) {
    const { api } = scripted(failure(status, code));
    await assert.rejects(api.createProduct(rye), { name: "ApiError", status, code, requestId: "r1" });
  }
});

test("pauses grow, and are as long as the service asks up to a minute", async () => {
  const { api } = scripted(failure(500, "internal_error"), failure(429, "rate_limited", { "Retry-After": "7" }), success({}));
  await api.listWorkspaces();
  const { api: other } = scripted(failure(429, "rate_limited", { "Retry-After": "61" }));
  await assert.rejects(other.listWorkspaces(), ApiError);
  const { api: third } = scripted(failure(500, "a"), failure(500, "b"), failure(500, "c"));
  await assert.rejects(third.listWorkspaces(), { code: "c" });
  const within = [[375, 500], [7000, 7250], [375, 500], [750, 1000]];
  assert.equal(waits.length, within.length);
  for (const [n, [least, most]] of within.entries()) assert.ok(least! <= waits[n]! && waits[n]! <= most!, `${waits}`);
});

test("a date in Retry-After counts from the date of the response", async () => {
  const at = (seconds: number) => new Date(Date.UTC(2020, 0, 1) + 1000 * seconds).toUTCString();
  const asked = (seconds: number) => failure(503, "", { Date: at(0), "Retry-After": at(seconds) });
  const { api } = scripted(asked(7), asked(-7), success({}));
  await api.listWorkspaces();
  const { api: other, requests } = scripted(asked(61));
  await assert.rejects(other.listWorkspaces(), ApiError);
  assert.equal(requests.length, 1);
  const within = [[7000, 7250], [750, 1000]];
  for (const [n, [least, most]] of within.entries()) assert.ok(least! <= waits[n]! && waits[n]! <= most!, `${waits}`);
});

test("a call ends with its signal, also in a pause", async () => {
  const reason = new Error("no longer needed");
  const { api, requests } = scripted(failure(500, "internal_error"), success({}));
  const options: RequestOptions = { signal: AbortSignal.abort(reason) };
  await assert.rejects(api.listWorkspaces({}, options));
  assert.equal(requests.length, 1);
  const { api: other, requests: others } = scripted(failure(429, "rate_limited", { "Retry-After": "0.04" }), success({}));
  const random = Math.random;
  Math.random = () => 0; // The pause has 40 milliseconds, in which the signal comes.
  const ending = new AbortController();
  startTimer(() => ending.abort(reason), 10);
  await assert.rejects(other.listWorkspaces({}, { signal: ending.signal }), reason);
  Math.random = random;
  assert.equal(others.length, 1);
});

test("options of a call that are undefined leave the settings in place", async () => {
  let attempts = 0;
  const answer = async () => { attempts++; return failure(500, "internal_error"); };
  const api = new WorkspaceApi({ baseUrl: "http://service.test", maxRetries: 0, timeout: Infinity, fetch: answer });
  const absent = { maxRetries: undefined, timeout: undefined, headers: undefined, signal: undefined };
  await assert.rejects(api.listWorkspaces({}, absent), { code: "internal_error" });
  assert.equal(attempts, 1);
  globalThis.setTimeout = startTimer; // Connections have timers, too.
  const local = new WorkspaceApi({ baseUrl: "http://127.0.0.1:1", fetch: undefined, maxRetries: 0 });
  await assert.rejects(local.listWorkspaces(), /fetch failed/);
});

test("a header of a call replaces that of the settings, however it is written", async () => {
  const requests: Headers[] = [];
  const api = new WorkspaceApi({
    baseUrl: "http://service.test",
    headers: { Prefer: "handling=strict", "User-Agent": "mine" },
    fetch: async (_, init) => { requests.push(new Headers(init!.headers)); return success({}); },
  });
  await api.listWorkspaces({}, { headers: { prefer: "handling=lenient" } });
  assert.equal(requests[0]!.get("prefer"), "handling=lenient");
  assert.equal(requests[0]!.get("user-agent"), "mine");
});

test("an id that would change the path is refused before it is sent", async () => {
  const { api, requests } = scripted();
  for (const id of ["", ".", "..", undefined!, null!]) {
    const result = api.getProduct({ id }); // It rejects, and does not throw before.
    await assert.rejects(result, { name: "TypeError", message: /^id: / });
  }
  assert.equal(requests.length, 0);
});

test("a page of something in between is an error, also with status 200", async () => {
  const page = (status: number) => new Response("<html>", { status, headers: { "Content-Type": "text/html" } });
  for (const status of [200, 403, 404]) {
    const { api } = scripted(page(status));
    await assert.rejects(api.listWorkspaces(), { name: "ApiError", status, code: "" });
  }
});

test("an attempt that takes too long is repeated", async () => {
  let attempts = 0;
  const api = new WorkspaceApi({
    baseUrl: "http://service.test",
    timeout: 20,
    fetch: (_, init) => new Promise((resolve, reject) => {
      if (++attempts > 1) return resolve(success({}));
      init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason));
    }),
  });
  await api.listWorkspaces();
  assert.equal(attempts, 2);
});

test("arguments go to path, query and body, below the path of the base URL", async () => {
  const { api, requests } = scripted(success({}), success({}), success({}));
  await api.getProduct({ id: "a/b" });
  await api.listProducts({ q: "rye & co", size: 5, status: undefined! });
  await api.updateAgent({ id: "7", name: "Ada" });
  assert.deepEqual(requests.map(({ method, url }) => `${method} ${url}`), [
    "GET http://service.test/prod/api/products/a%2Fb",
    "GET http://service.test/prod/api/products/list?q=rye+%26+co&size=5",
    "PUT http://service.test/prod/api/agents/7",
  ]);
  assert.deepEqual(await requests[2]!.json(), { name: "Ada" });
  assert.equal(requests[0]!.headers.get("authorization"), "Bearer svc_live_1");
});

test("an iteration reads pages until the last one, and a page is one request", async () => {
  const page = (ids: string[], total: number) => success({ collections: ids.map((id) => ({ id })), total, pagination: { size: 2 } });
  const { api, requests } = scripted(page(["1", "2"], 3), page(["3"], 3));
  const ids: string[] = [];
  for await (const lead of api.listLeads({ size: 2 })) ids.push(lead.id);
  assert.deepEqual(ids, ["1", "2", "3"]);
  assert.deepEqual(requests.map((request) => new URL(request.url).search), ["?size=2", "?size=2&page=2"]);
  const { api: other, requests: others } = scripted(page(["1", "2"], 3));
  for await (const lead of other.listLeads({ size: 2 })) if (lead.id === "1") break;
  assert.equal(others.length, 1);
});

test("a large file is sent in two steps, without the key of the API to the storage", async () => {
  const upload = { id: "u1", url: "https://storage.test/u1?signature=1", method: "PUT" };
  const { api, requests } = scripted(success({ upload }), new Response(null, { status: 204 }), success({ file: { id: "f1" } }));
  const file = await api.upload({ name: "tour.bin", content: new Uint8Array(4_000_001), folderId: "7" });
  assert.equal(file.id, "f1");
  assert.deepEqual(await requests[0]!.json(), { name: "tour.bin", size: 4_000_001, folderId: "7" });
  assert.equal(requests[1]!.headers.get("authorization"), null);
  assert.equal((await requests[1]!.arrayBuffer()).byteLength, 4_000_001);
  assert.deepEqual(await requests[2]!.json(), { id: "u1" });
});

test("a chat is repeated before it begins, and its events are whole however they are cut", async () => {
  const text = 'data: {"type":"start","sessionId":"s"}\n\n: ping\n\ndata: {"type":"chunk","content":"хлеб"}\n\ndata: {"type":"done"}\n\n';
  const bytes = new TextEncoder().encode(text);
  const body = new ReadableStream({
    start(stream) {
      for (let n = 0; n < bytes.length; n += 3) stream.enqueue(bytes.slice(n, n + 3));
      stream.close();
    },
  });
  const { api, requests } = scripted(new TypeError("fetch failed"), new Response(body));
  const events = [];
  for await (const event of api.chat({ agentId: "a", message: "?" })) events.push(event);
  assert.deepEqual(events.map(({ type }) => type), ["start", "chunk", "done"]);
  assert.equal(events[1]!.type === "chunk" && events[1]!.content, "хлеб");
  const [first, second] = keys(requests);
  assert.ok(first);
  assert.equal(first, second);
});

test("a chat that the caller leaves or ends by its signal ends its connection", async () => {
  globalThis.setTimeout = startTimer;
  for (const way of ["leaves", "signal"]) {
    let hasEnded = false;
    const server = createServer((_, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" }).write('data: {"type":"start","sessionId":"s"}\n\n');
    });
    const closed = new Promise<void>((resolve) => server.on("connection", (socket) => socket.on("close", () => resolve())));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const api = new WorkspaceApi({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    const ending = new AbortController();
    const read = async () => {
      for await (const _ of api.chat({ agentId: "a", message: "?" }, { signal: ending.signal })) {
        if (way === "leaves") break;
        ending.abort(new Error("no longer needed"));
      }
      hasEnded = true;
    };
    if (way === "leaves") await read();
    else await assert.rejects(read(), /no longer needed/);
    await closed;
    assert.equal(hasEnded, way === "leaves");
    server.close();
  }
});

test("a chat that is cut off throws after its events", async () => {
  const { api } = scripted(new Response('data: {"type":"start","sessionId":"s"}\n\ndata: {"type":"chu'));
  const events: string[] = [];
  await assert.rejects(async () => {
    for await (const event of api.chat({ agentId: "a", message: "?" })) events.push(event.type);
  }, /cut off/);
  assert.deepEqual(events, ["start"]);
});

const secret = `whsec_${Buffer.from("a secret of the test").toString("base64")}`;
const event = JSON.stringify({ type: "lead.created", timestamp: "2026-11-23T09:00:00.000Z", data: { id: "хлеб" } });
function signed(body = event, at = Math.floor(Date.now() / 1000)) {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`e1.${at}.${body}`).digest("base64");
  return { "webhook-id": "e1", "webhook-timestamp": `${at}`, "webhook-signature": `v1a,x v1,AAAA v1,${signature}` };
}

test("a signed webhook is accepted as text and bytes, with any of several secrets", async () => {
  assert.equal((await verifyWebhook(event, signed(), secret)).data.id, "хлеб");
  const other = `whsec_${Buffer.from("another secret").toString("base64")}`;
  const bytes = new TextEncoder().encode(event);
  assert.equal((await verifyWebhook(bytes, new Headers(signed()), [other, secret])).type, "lead.created");
  assert.equal((await verifyWebhook(bytes.buffer, signed(), secret)).type, "lead.created");
});

test("the headers of a webhook are found in any object, as API Gateway and other classes of Headers have them", async () => {
  const written = Object.fromEntries(Object.entries(signed()).map(([name, value]) => [name.toUpperCase(), value]));
  assert.equal((await verifyWebhook(event, written, secret)).type, "lead.created");
  const given = new Map(Object.entries(signed()));
  const other = { get: (name: string) => given.get(name) ?? null };
  assert.equal((await verifyWebhook(event, other, secret)).type, "lead.created");
});

test("a parsed body and a missing secret are errors of the receiver, not of the sender", async () => {
  await assert.rejects(verifyWebhook(JSON.parse(event), signed(), secret), { name: "TypeError", message: /^body: / });
  for (const missing of ["", "whsec_", "whsec_%"]) {
    await assert.rejects(verifyWebhook(event, signed(), missing), { name: "TypeError", message: /^secret: / });
  }
});

test("a webhook is refused if it was changed, is old or early, has another secret or lacks a header", async () => {
  const now = Math.floor(Date.now() / 1000);
  const { "webhook-signature": _, ...unsigned } = signed();
  const refused: [string, Record<string, string>, string][] = [
    [`${event} `, signed(), secret],
    [event, { ...signed(), "webhook-id": "e2" }, secret],
    [event, signed(event, now - 301), secret],
    [event, signed(event, now + 310), secret],
    [event, { ...signed(), "webhook-timestamp": "soon" }, secret],
    [event, signed(), "whsec_b3RoZXI="],
    [event, unsigned, secret],
  ];
  for (const given of refused) await assert.rejects(verifyWebhook(...given), WebhookError);
  assert.equal((await verifyWebhook(event, signed(event, now - 400), secret, { tolerance: 500 })).type, "lead.created");
});
