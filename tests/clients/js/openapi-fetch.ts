// openapi-fetch with the types of openapi-typescript: what TypeScript allows is sent to BASE_URL, and printed.
import createClient from "openapi-fetch";
import type { paths } from "./openapi-typescript.js";

const { BASE_URL: baseUrl, API_KEY, NAME: name = "" } = process.env;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${API_KEY}` } });

const created = await client.POST("/api/products/create", { body: { name, price: 12900 } });
if (!created.data) throw new Error(created.error.data.message);
const { id, price } = created.data.data.product;
console.log("created", created.data.data.status, price);

const read = await client.GET("/api/products/{id}", { params: { path: { id } } });
console.log("read", read.data?.data.product.name === name, read.data?.data.product.sku);

const list = await client.GET("/api/products/list", { params: { query: { q: name, status: "active" } } });
console.log("listed", list.data?.data.total, list.data?.data.products[0]?.id === id);

const changed = await client.POST("/api/products/update", { body: { id, price: 13900, description: null } });
console.log("changed", changed.data?.data.product.price, changed.data?.data.product.status);

const failed = await client.GET("/api/products/{id}", { params: { path: { id: "nobody" } } });
console.log("failed", failed.response.status, failed.error?.data.code, failed.error?.data.status);

const agents = await client.GET("/api/agents/list");
const agentId = agents.data?.data.agents[0]?.id ?? "";
const event = { agentId, visitId: name.replace(/[^a-z0-9]/gi, ""), stage: "opened" } as const;
const counted = await client.POST("/api/public/widget-event", { body: event });
const repeated = await client.POST("/api/public/widget-event", { body: event });
console.log("counted", counted.data?.data.counted, repeated.data?.data.counted);
