// The axios client that orval generates: what TypeScript allows is sent to BASE_URL, and printed.
import axios, { isAxiosError } from "axios";
import { getWorkspaceAutomationAPI, type Failure, type WidgetEventResult } from "./orval-client.js";

const { BASE_URL: baseURL, API_KEY, NAME: name = "" } = process.env;
axios.defaults.baseURL = baseURL;
axios.defaults.headers.common.Authorization = `Bearer ${API_KEY}`;
const client = getWorkspaceAutomationAPI();

const created = (await client.createProduct({ name, price: 12900 })).data.data;
const { id, price } = created.product;
console.log("created", created.status, price);

const read = (await client.getProduct(id)).data.data.product;
console.log("read", read.name === name, read.sku);

const list = (await client.listProducts({ q: name, status: "active" })).data.data;
console.log("listed", list.total, list.products[0]?.id === id);

const changed = (await client.updateProduct({ id, price: 13900, description: null })).data.data;
console.log("changed", changed.product.price, changed.product.status);

try {
  await client.getProduct("nobody");
} catch (error) {
  if (!isAxiosError<Failure>(error) || !error.response) throw error;
  console.log("failed", error.response.status, error.response.data.data.code, error.response.data.data.status);
}

const agentId = (await client.listAgents()).data.data.agents[0]?.id ?? "";
const event = { agentId, visitId: name.replace(/[^a-z0-9]/gi, ""), stage: "opened" } as const;
const counted: WidgetEventResult = await client.widgetEvent(event);
const repeated = await client.widgetEvent(event);
console.log("counted", counted.data.data.counted, repeated.data.data.counted);
