// The official TypeScript SDK calls one tool and prints the result. It connects to SERVER_URL, directly or, with an
// argument, through mcp-remote, by which clients without HTTP use a remote server.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { SERVER_URL, TOOL, ARGUMENTS } = process.env;
const [remote] = process.argv.slice(2);
const transport = remote
  ? new StdioClientTransport({ command: process.execPath, args: [remote, SERVER_URL, "--allow-http"], env: process.env })
  : new StreamableHTTPClientTransport(new URL(SERVER_URL));
const client = new Client({ name: "tester", version: "1" });
await client.connect(transport);
const { content, isError = false } = await client.callTool({ name: TOOL, arguments: JSON.parse(ARGUMENTS) });
console.log(JSON.stringify({ failed: isError, text: content[0].text }));
await client.close();
