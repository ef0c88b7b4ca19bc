/** Client of the Workspace Automation API. README.md shows how it is used. */

export { ApiError, type RequestOptions } from "./requests.js";
export { type ChatEvent, type ChatMessage, type Data, type Input, type Settings, WorkspaceApi } from "./client.js";
export { type WebhookEvent, WebhookError, verifyWebhook } from "./webhooks.js";
export { version } from "./routes.js";
export type { components } from "./schema.js";
