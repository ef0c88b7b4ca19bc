// A host on the AppRenderer of mcp-ui, whose client has the handshake of earlier versions.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { AppRenderer } from "@mcp-ui/client";
import { createElement } from "react";
import { createRoot } from "react-dom/client";

window.host = async ({ server, token, tool, input, sandbox, context }) => {
  window.opened = [];
  window.failed = [];
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const client = new Client({ name: "host", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(server), { requestInit: { headers } }));
  await client.listTools();
  const toolResult = await client.callTool({ name: tool, arguments: input });
  createRoot(document.getElementById("root")).render(createElement(AppRenderer, {
    client, toolName: tool, toolInput: input, toolResult, hostContext: context,
    sandbox: { url: new URL(sandbox), permissions: "allow-scripts allow-same-origin" },
    onOpenLink: async ({ url }) => { window.opened.push(url); return {}; },
    onError: (error) => { window.failed.push(String(error)); },
  }));
};
