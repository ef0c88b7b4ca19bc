// Builds the site of a dentist in an empty workspace with an API key alone, and then uses the site as visitors do.
//
//   API_KEY=svc_live_… node examples/dentist/build.ts
//
// Each step writes a line about what it found. At the end, all of them are printed as one JSON object.
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError, type components, type Data, type Input, WorkspaceApi } from "workspace-automation";
import { startReceiver, type Receiver } from "./receiver.ts";

const { BASE_URL = "http://127.0.0.1:8000", API_KEY } = process.env;
if (!API_KEY) throw new Error("Set API_KEY to a key of an empty workspace.");

// Unknown arguments are refused, so a misspelt filter does not return everybody.
const settings = { baseUrl: BASE_URL, maxRetries: 5, headers: { Prefer: "handling=strict" } };
const agency = new WorkspaceApi({ ...settings, apiKey: API_KEY });
const visitor = new WorkspaceApi(settings);

function check(isTrue: boolean, problem: string): asserts isTrue {
  if (!isTrue) throw new Error(problem);
}

/** Return the date in some days, or the Monday after it if it is a Sunday. */
function workingDay(days: number): string {
  const day = new Date();
  day.setUTCDate(day.getUTCDate() + days);
  if (day.getUTCDay() === 0) day.setUTCDate(day.getUTCDate() + 1);
  return day.toISOString().slice(0, 10);
}

type Outcome = components["schemas"]["UpsertedRecord"];

/** Return all records of a list. */
async function readAll<T>(list: AsyncIterable<T>): Promise<T[]> {
  const records: T[] = [];
  for await (const record of list) records.push(record);
  return records;
}

/** Return how many items were created, updated or unchanged, or have failed with which code. */
function count(outcomes: { code: string }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { code } of outcomes) counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}

/** Return the outcomes of an upsert, of which each has to have a record. */
async function succeeded<T extends { id?: string | null; message: string }>(upsert: Promise<{ results: T[] }>): Promise<T[]> {
  const { results } = await upsert;
  for (const { id, message } of results) check(typeof id === "string", message);
  return results;
}

/** Return the id of an upserted record. */
function idOf(outcomes: Outcome[], externalId: string): string {
  const id = outcomes.find((outcome) => outcome.externalId === externalId)?.id;
  check(typeof id === "string", `There is no ${externalId}.`);
  return id;
}

/** Stop if the workspace has records already. */
async function expectEmptyWorkspace(): Promise<void> {
  const lists = [agency.listSites({ size: 1 }), agency.listServices({ size: 1 }), agency.listProducts({ size: 1 })];
  for (const { total } of await Promise.all(lists)) {
    check(total === 0, `The workspace of this key is not empty: a list has ${total} records.`);
  }
}

async function describeBusiness(): Promise<{ slug: string }> {
  await agency.setWorkspace({
    name: "Clear Dental",
    phone: "+7 495 123-45-67",
    address: "Arbat 1, Moscow",
    accent: "teal",
  });
  const { bookingPage } = await agency.getBookingPage();
  return { slug: bookingPage.slug };
}

/** Let the workspace report to our receiver what happens. */
async function addWebhook(receiver: Receiver): Promise<{ webhookId: string }> {
  const input: Input<"createWebhook"> = {
    url: receiver.url,
    events: [
      "client.created",
      "lead.created",
      "lead.status_changed",
      "booking.created",
      "booking.paid",
      "booking.moved",
      "booking.status_changed",
    ],
  };
  let made: Data<"createWebhook"> | Data<"rotateWebhookSecret">;
  try {
    made = await agency.createWebhook(input);
  } catch (error) {
    if (!(error instanceof ApiError && error.code === "already_created")) throw error;
    // The webhook exists, but the response with its secret was lost. A secret is shown once, so get another one.
    made = await agency.rotateWebhookSecret({ id: error.data.webhook.id });
  }
  check(made.secret !== null, "The response has no secret.");
  receiver.secret = made.secret;
  return { webhookId: made.webhook.id };
}

type Rules = NonNullable<Input<"setAvailability">["rules"]>;

interface Clinic {
  checkUp: string;
  cleaning: string;
  boris: string;
  holiday: string;
}

/** Bring two services and two dentists in step with our own system. A second call changes nothing. */
async function syncServicesAndStaff(categoryId: string): Promise<Outcome[]> {
  const service = { categoryId, minNoticeMin: 60 };
  const checkUp = { externalId: "check-up", name: "Check-up", durationMin: 30, price: 300000 }; // 3,000 rubles, in kopecks
  const cleaning = {
    externalId: "cleaning",
    name: "Professional cleaning",
    description: "Ultrasound, polishing and fluoride.",
    durationMin: 60,
    price: 600000,
    requirePayment: true,
  };
  const items = [checkUp, cleaning].map((each) => ({ ...service, ...each }));
  const services = await succeeded(agency.upsertServices({ items }));
  const serviceIds = [idOf(services, "check-up"), idOf(services, "cleaning")];
  const dentists = [
    { externalId: "orlova", name: "Dr. Anna Orlova", serviceIds },
    { externalId: "sokolov", name: "Dr. Boris Sokolov", serviceIds },
  ];
  const staff = await succeeded(agency.upsertResources({ items: dentists }));
  return [...services, ...staff];
}

/** Create the services and the dentists with their hours, and close the clinic for a day. */
async function createClinic(): Promise<Clinic & Record<"first" | "second", Record<string, number>>> {
  const { category } = await agency.createCategory({ name: "Dentistry", kind: "service" });
  const first = await syncServicesAndStaff(category.id);
  const second = await syncServicesAndStaff(category.id);
  const intervals = [
    { start: "09:00", end: "13:00" },
    { start: "14:00", end: "19:00" },
  ];
  for (const dentist of ["orlova", "sokolov"]) {
    const resourceId = idOf(first, dentist);
    const rules = [{ weekdays: ["mon", "tue", "wed", "thu", "fri", "sat"], intervals }] satisfies Rules;
    await agency.setAvailability({ resourceId, rules });
  }
  const holiday = workingDay(10);
  await agency.createTimeOff({ startAt: holiday, endAt: holiday, reason: "Training" });
  return {
    checkUp: idOf(first, "check-up"),
    cleaning: idOf(first, "cleaning"),
    boris: idOf(first, "sokolov"),
    holiday,
    first: count(first),
    second: count(second),
  };
}

/** Bring the patients in step with the clinic's own system. */
async function syncPatients(): Promise<Record<string, number>> {
  const items = [
    { externalId: "card-1815", name: "Ada", phone: "8 903 765-43-21", metadata: { insurance: "A-17" } },
    { externalId: "card-1906", name: "Grace", email: "grace.patient@example.com" },
    { externalId: "card-1921", name: "Joan", phone: "8 903 111-22-33", tags: ["child"] },
  ];
  return count(await succeeded(agency.upsertClients({ items })));
}

/** Have 30 percent of the cleaning paid in advance, and open the booking page. */
async function openBooking({ checkUp, cleaning }: Clinic): Promise<{ url: string }> {
  const terms = { id: cleaning, depositPercent: 30, refundUntilMin: 1440 };
  const { paymentTerms } = await agency.setPaymentTerms(terms);
  check(paymentTerms.takesPayments, "The owner has not set up payments: see the README.");
  const { bookingPage } = await agency.setBookingPage({
    isOn: true,
    phone: "+7 495 123-45-67",
    offer: [checkUp, cleaning],
  });
  return { url: bookingPage.url };
}

/** Bring the catalogue in step with the table. Returns the number of products by outcome. */
async function syncProducts(): Promise<Record<string, number>> {
  const table = readFileSync(new URL("products.csv", import.meta.url), "utf8").trim().split("\n");
  const rows = table.slice(1).map((line) => line.split(",")); // No cell of this table has a comma.
  const categories = await readAll(agency.listCategories({ kind: "product" }));
  const categoryIds = new Map(categories.map(({ id, name }) => [name, id]));
  for (const name of new Set(rows.map((row) => row[4] ?? ""))) {
    if (categoryIds.has(name)) continue;
    const { category } = await agency.createCategory({ name, kind: "product" });
    categoryIds.set(name, category.id);
  }
  const items = rows.map(([sku = "", name = "", price, stock, category = ""]) => ({
    sku,
    name,
    price: Math.round(Number(price) * 100),
    stock: Number(stock),
    categoryId: categoryIds.get(category) ?? null,
  }));
  const outcomes: { code: string }[] = [];
  for (let start = 0; start < items.length; start += 100) {
    const some = items.slice(start, start + 100);
    outcomes.push(...(await succeeded(agency.upsertProducts({ items: some }))));
  }
  return count(outcomes);
}

/** Create a form, send it as a visitor does, and work with the lead. */
async function takeLead(receiver: Receiver): Promise<{ formId: string; leadId: string }> {
  const { form } = await agency.createForm({
    title: "Call me back",
    fields: [
      { name: "name", label: "Your name", required: true },
      { name: "phone", label: "Phone", type: "phone", required: true },
      { name: "consent", label: "I agree to the processing of my data", type: "consent", required: true },
    ],
  });
  const sent = await fetch(form.submitUrl, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name: "Vera", phone: "8 916 123-45-67", consent: "yes" }),
  });
  check(sent.ok, `The form was refused: ${await sent.text()}`);
  const { leads } = await agency.findLead({ phone: "+79161234567" });
  const [lead] = leads;
  check(lead !== undefined, "The lead was not found by its phone.");
  await agency.setLeadStatus({ id: lead.id, status: "in_progress" });
  await receiver.receive("lead.created", lead.id);
  await receiver.receive("lead.status_changed", lead.id);
  return { formId: form.id, leadId: lead.id };
}

/** Create a bot, which knows the services and their prices, and what we add. */
async function createBot(): Promise<{ id: string }> {
  const { agent } = await agency.createAgent({
    name: "Receptionist",
    model: "gpt-4o-mini",
    systemPrompt: "You are the receptionist of a dental clinic. Be short and friendly.",
  });
  await agency.addKnowledge({
    id: agent.id,
    title: "Parking",
    text: "Patients park for free in the yard of the clinic.",
  });
  return { id: agent.id };
}

/** Publish a page of sections and a page of our own HTML. Both show the bot. */
async function publishSite(formId: string, botId: string): Promise<{ home: string; parking: string }> {
  const { project: site } = await agency.createSite({ title: "Clear Dental" });
  const publish = async (title: string, content: string): Promise<{ id: string; url: string }> => {
    const { page } = await agency.createPage({ projectId: site.id, title });
    const widget = `<script src="${BASE_URL}/widget.js" data-agent="${botId}" async></script>`;
    const html = `<!doctype html><html lang="en"><head><title>${title}</title></head><body>${content}${widget}</body></html>`;
    await agency.savePageHtml({ id: page.id, html, returnHtml: false });
    return page;
  };
  const home = await publish("Clear Dental", "<h1>Clear Dental</h1>");
  await agency.updatePage({
    id: home.id,
    isHome: true,
    description: "A dental clinic on Arbat",
    sections: [
      { type: "text", text: "We have treated **Moscow** since 2009." },
      { type: "heading", text: "Prices" },
      { type: "prices" },
      { type: "booking", text: "Book a visit" },
      { type: "hours" },
      { type: "map", text: "Arbat 1, Moscow" },
      { type: "form", formId },
    ],
  });
  const parking = await publish("Parking", "<h1>Parking</h1><p>Park in our yard, for free.</p>");
  return { home: home.url, parking: parking.url };
}

/** Open the pages as a browser does, and return which of some parts they have. */
async function openPages(pages: { home: string; parking: string }, botId: string): Promise<Record<string, boolean>> {
  const home = await (await fetch(pages.home)).text();
  const parking = await (await fetch(pages.parking)).text();
  const bot = `data-agent="${botId}"`;
  return {
    price: home.includes("Professional cleaning"),
    form: home.includes("svc-form"),
    bot: home.includes(bot) && parking.includes(bot),
  };
}

/** Read what a page of our own needs to show the business. Visitors and browsers need no key for it. */
async function readPublic(workspace: string): Promise<{ name: string; services: number; products: number; cached: boolean }> {
  const { business } = await visitor.getPublicBusiness({ workspace });
  const services = await readAll(visitor.listPublicServices({ workspace }));
  const products = await readAll(visitor.listPublicProducts({ workspace, size: 100 }));
  const url = `${BASE_URL}/api/public/services?workspace=${workspace}`;
  const etag = (await fetch(url)).headers.get("ETag") ?? "";
  const again = await fetch(url, { headers: { "If-None-Match": etag } });
  return { name: business.name, services: services.length, products: products.length, cached: again.status === 304 };
}

/** Ask the bot as a visitor. The answer arrives in pieces. */
async function ask(agentId: string, message: string): Promise<string> {
  let answer = "";
  for await (const event of visitor.chat({ agentId, message })) {
    if (event.type === "chunk") answer += event.content;
    if (event.type === "error") throw new Error(event.error);
  }
  return answer;
}

/** Return the free times of a service on a day, with the price and the terms that the visitor is shown. */
async function findTimes(serviceId: string, day: string) {
  const found = await visitor.getPublicSlots({ id: serviceId, from: day, to: day });
  const { slots, reason, price, durationMin, amountDue, refundUntilMin } = found;
  return { slots, reason, terms: { price, durationMin, amountDue, refundUntilMin } };
}

/** Book a cleaning as a visitor, pay the deposit, move the visit and cancel it, by the token of `manageUrl`. */
async function bookPayMoveAndCancel(clinic: Clinic, receiver: Receiver): Promise<Record<string, unknown>> {
  const closed = await findTimes(clinic.cleaning, clinic.holiday);
  const { slots, terms } = await findTimes(clinic.cleaning, workingDay(3));
  const [first, second] = slots;
  check(first !== undefined && second !== undefined, "There are not enough free times.");

  // The shown terms are sent with the booking. If they have changed in the meantime, the response is 409 `changed`.
  // The example may run often, so each run has a client of its own: one contact can be booked three times an hour.
  const booked = await visitor.createPublicBooking({
    ...terms,
    serviceId: clinic.cleaning,
    startAt: first.startAt,
    client: { name: "Grace", email: `grace.${Date.now()}@example.com` },
  });
  check("booking" in booked && booked.manageUrl !== null, "The visitor has to confirm the booking by a link in an e-mail.");
  const { id } = booked.booking;
  const token = booked.manageUrl.slice(booked.manageUrl.lastIndexOf("/") + 1);

  const { paymentUrl } = await visitor.payBooking({ token });
  await payAtTestMerchant(paymentUrl);
  await receiver.receive("booking.paid", id);
  const paid = await visitor.getManagedBooking({ token });

  await visitor.movePublicBooking({ token, startAt: second.startAt });
  await receiver.receive("booking.moved", id);
  const moved = await visitor.getManagedBooking({ token });

  await visitor.cancelPublicBooking({ token, refund: moved.refund }); // The refund that was shown.
  let cancelled = await visitor.getManagedBooking({ token });
  for (let tries = 0; cancelled.refundState === "returning" && tries < 30; tries++) {
    await sleep(2000);
    cancelled = await visitor.getManagedBooking({ token });
  }
  return {
    closedBecause: closed.reason,
    deposit: terms.amountDue,
    booked: booked.booking.status,
    paid: paid.booking.status,
    movesLeft: moved.movesLeft,
    cancelled: cancelled.booking.status,
    refund: moved.refund,
    refundState: cancelled.refundState,
  };
}

/** Press *Pay* on the page of the test merchant of `make dev`. At a real provider, the client does this in a browser. */
async function payAtTestMerchant(paymentUrl: string): Promise<void> {
  const body = new URLSearchParams({ action: "pay" });
  const response = await fetch(paymentUrl, { method: "POST", body, redirect: "manual" });
  check(response.status === 303, `The test merchant answered with ${response.status}.`);
}

/** Book for a client who calls. A key has none of the limits of visitors. */
async function bookByPhone(clinic: Clinic, receiver: Receiver): Promise<{ id: string; status: string }> {
  const times = { serviceId: clinic.checkUp, resourceId: clinic.boris, from: workingDay(4), to: workingDay(4) };
  const { slots } = await agency.getAvailableSlots(times);
  const [slot] = slots;
  check(slot !== undefined, "Dr. Sokolov has no free time.");
  const { booking } = await agency.createBooking({
    serviceId: clinic.checkUp,
    resourceId: clinic.boris,
    startAt: slot.startAt,
    client: { name: "Ada", phone: "+7 903 765-43-21" }, // A patient already: the phone says so.
  });
  await receiver.receive("booking.created", booking.id);
  return { id: booking.id, status: booking.status };
}

/** Send an event with a wrong signature to our receiver, and return its status. */
async function forgeEvent(receiver: Receiver): Promise<number> {
  const response = await fetch(receiver.url, {
    method: "POST",
    headers: {
      "webhook-id": "evt_forged",
      "webhook-timestamp": String(Math.floor(Date.now() / 1000)),
      "webhook-signature": `v1,${Buffer.alloc(32).toString("base64")}`,
    },
    body: JSON.stringify({ type: "booking.paid", data: { id: "forged" } }),
  });
  return response.status;
}

/** Export the workspace to a file, from which the operator of the service restores it. */
async function exportWorkspace(file: string): Promise<{ file: string; records: number; notIncluded: string[] }> {
  // While an export is running, a repeated call returns it.
  const { exportId } = await agency.exportWorkspace();
  let found = await agency.getExport({ id: exportId });
  while (found.state === "running") {
    await sleep(2000);
    found = await agency.getExport({ id: exportId });
  }
  const { url, records, notIncluded } = found;
  check(typeof url === "string", "The export has failed.");
  const response = await fetch(url); // The URL is valid for 15 minutes. Whoever has it needs no key.
  check(response.ok, `The file was refused with ${response.status}.`);
  // It has personal data, so only its owner may read it.
  writeFileSync(file, Buffer.from(await response.arrayBuffer()), { mode: 0o600 });
  return { file, records, notIncluded: Object.keys(notIncluded).sort() };
}

const report: Record<string, unknown> = {};

/** Wait for a step and note its result. */
async function step<T>(name: string, result: Promise<T>): Promise<T> {
  const value = await result;
  report[name] = value;
  console.error(name, JSON.stringify(value) ?? "");
  return value;
}

const receiver = await startReceiver(Number(process.env.RECEIVER_PORT ?? 0));
try {
  await step("empty", expectEmptyWorkspace());
  const { slug } = await step("business", describeBusiness());
  await step("webhook", addWebhook(receiver));
  const clinic = await step("clinic", createClinic());
  await step("booking", openBooking(clinic));
  await step("patients", syncPatients());
  await step("patientsAgain", syncPatients());
  await step("products", syncProducts());
  await step("productsAgain", syncProducts());
  const { formId } = await step("lead", takeLead(receiver));
  const bot = await step("bot", createBot());
  const pages = await step("site", publishSite(formId, bot.id));
  await step("pages", openPages(pages, bot.id));
  await step("public", readPublic(slug));
  await step("answer", ask(bot.id, "How much is a check-up?"));
  await step("visit", bookPayMoveAndCancel(clinic, receiver));
  await step("phone", bookByPhone(clinic, receiver));
  await step("forged", forgeEvent(receiver));
  await step("export", exportWorkspace(process.env.EXPORT_FILE ?? "clear-dental.zip"));
  report.events = [...new Set(receiver.events.map(({ type }) => type))].sort();
  report.refused = receiver.refused;
  console.log(JSON.stringify(report));
} finally {
  receiver.close();
}
