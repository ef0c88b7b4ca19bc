// Compares a workspace with the copy that the operator has restored from its export, by a key of each.
//
//   API_KEY=svc_live_… RESTORED_API_KEY=svc_live_… node examples/dentist/compare.ts
//
// The number of records of each kind and every difference are printed as one JSON object. A copy has ids and slugs of
// its own, so each record of the copy is compared after its ids were translated into those of the original.
import { WorkspaceApi } from "workspace-automation";

type Fields = Record<string, unknown>;
type Snapshot = Record<string, Fields[]>;

/** Return all records of a list. */
async function readAll<T>(list: AsyncIterable<T>): Promise<T[]> {
  const records: T[] = [];
  for await (const record of list) records.push(record);
  return records;
}

function each<T>(records: { id: string }[], read: (id: string) => Promise<T>): Promise<T[]> {
  return Promise.all(records.map(({ id }) => read(id)));
}

/** Read everything that a key can read of a workspace. */
async function readWorkspace(api: WorkspaceApi): Promise<Snapshot> {
  const page = { size: 100 };
  const sites = await readAll(api.listSites(page));
  const pages = (await each(sites, (projectId) => readAll(api.listPages({ projectId, ...page })))).flat();
  const services = await readAll(api.listServices(page));
  const resources = await readAll(api.listResources(page));
  const bookings = await readAll(api.listBookings(page));
  const clients = await readAll(api.listClients(page));
  const forms = await readAll(api.listForms(page));
  const leads = await readAll(api.listLeads(page));
  const agents = await readAll(api.listAgents(page));
  const dialogs = (await each(agents, (agentId) => readAll(api.listAgentDialogs({ agentId, ...page })))).flat();
  // A record of a list is shortened, so most are read one by one.
  return {
    workspace: [(await api.getWorkspace()).workspace],
    bookingPage: [(await api.getBookingPage()).bookingPage],
    sites,
    pages: await each(pages, async (id) => (await api.getPage({ id })).page),
    categories: await readAll(api.listCategories(page)),
    products: await readAll(api.listProducts(page)),
    services: await each(services, async (id) => (await api.getService({ id })).service),
    paymentTerms: await each(services, async (id) => (await api.getPaymentTerms({ id })).paymentTerms),
    resources: await each(resources, async (id) => (await api.getResource({ id })).resource),
    openingHours: await each(resources, (resourceId) => api.listAvailability({ resourceId })),
    timeOff: await readAll(api.listTimeOff(page)),
    bookings: await each(bookings, async (id) => (await api.getBooking({ id })).booking),
    clients: await each(clients, async (id) => (await api.getClient({ id })).client),
    forms: await each(forms, async (id) => (await api.getForm({ id })).form),
    leads: await each(leads, async (id) => (await api.getLead({ id })).lead),
    files: await readAll(api.listFiles(page)),
    agents: await each(agents, async (id) => (await api.getAgent({ id })).agent),
    knowledge: (await each(agents, (id) => readAll(api.listKnowledge({ id, ...page })))).flat(),
    dialogs: await each(dialogs, async (id) => {
      const { dialog, messages } = await api.getAgentDialog({ id });
      return { ...dialog, messages };
    }),
    webhooks: (await api.listWebhooks()).webhooks,
  };
}

/** Return the restored records with the ids and slugs of the original. The lists of both have the same order. */
function translate(restored: Snapshot, original: Snapshot): Snapshot {
  const names = new Map<string, string>();
  for (const [noun, records] of Object.entries(original)) {
    records.forEach((record, index) => {
      const copy = restored[noun]?.[index];
      for (const name of ["id", "slug"]) {
        const [mine, theirs] = [record[name], copy?.[name]];
        if (typeof mine === "string" && typeof theirs === "string" && theirs && theirs !== mine) names.set(theirs, mine);
      }
    });
  }
  let text = JSON.stringify(restored);
  for (const [theirs, mine] of names) text = text.replaceAll(theirs, mine);
  return JSON.parse(text) as Snapshot;
}

interface Difference {
  noun: string;
  id: unknown;
  field: string;
  original: unknown;
  restored: unknown;
}

/** Return the fields of records that differ. A record that was lost differs in all of them. */
function compare(original: Snapshot, restored: Snapshot): Difference[] {
  const found: Difference[] = [];
  for (const noun of Object.keys(original)) {
    const [before = [], after = []] = [original[noun], restored[noun]];
    for (let index = 0; index < Math.max(before.length, after.length); index++) {
      const [left = {}, right = {}] = [before[index], after[index]] as [Fields?, Fields?];
      for (const field of new Set([...Object.keys(left), ...Object.keys(right)])) {
        if (JSON.stringify(left[field]) === JSON.stringify(right[field])) continue;
        found.push({ noun, id: left.id, field, original: left[field], restored: right[field] });
      }
    }
  }
  return found;
}

const { BASE_URL = "http://127.0.0.1:8000", API_KEY, RESTORED_API_KEY } = process.env;
if (!API_KEY || !RESTORED_API_KEY) throw new Error("Set API_KEY and RESTORED_API_KEY to a key of each workspace.");

// Unknown arguments are refused, so a misspelt filter does not return everybody.
const settings = { baseUrl: BASE_URL, headers: { Prefer: "handling=strict" } };
const connect = (apiKey: string): WorkspaceApi => new WorkspaceApi({ ...settings, apiKey });

const original = await readWorkspace(connect(API_KEY));
const restored = translate(await readWorkspace(connect(RESTORED_API_KEY)), original);
const counts = Object.fromEntries(Object.entries(original).map(([noun, records]) => [noun, records.length]));
console.log(JSON.stringify({ counts, differences: compare(original, restored) }, null, 2));
