// A host on the AppBridge of ext-apps. The tests call host() with what to connect to and to show.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, PostMessageTransport, getToolUiResourceUri } from "@modelcontextprotocol/ext-apps/app-bridge";

window.host = async ({ server, token, tool, input, sandbox, context, resources = true }) => {
  window.opened = [];
  window.called = [];
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };
  const client = new Client({ name: "host", version: "1" }, { capabilities: { extensions } });
  await client.connect(new StreamableHTTPClientTransport(new URL(server), { requestInit: { headers } }));
  const { tools } = await client.listTools();
  const definition = tools.find((each) => each.name === tool);
  const uri = getToolUiResourceUri(definition);
  const { contents: [page] } = await client.readResource({ uri });
  const result = await client.callTool({ name: tool, arguments: input });
  document.body.classList.toggle("dark", context.theme === "dark");

  const frame = document.createElement("iframe");
  frame.title = "Sandbox";
  frame.setAttribute("sandbox", "allow-scripts allow-same-origin");
  document.getElementById("root").replaceChildren(frame);
  const capabilities = { openLinks: {}, serverTools: {}, ...(resources ? { serverResources: {} } : {}) };
  const bridge = new AppBridge(client, { name: "host", version: "1" }, capabilities, { hostContext: context });
  bridge.onopenlink = async ({ url }) => {
    window.opened.push(url);
    return window.deny ? { isError: true } : {};
  };
  const isReady = new Promise((resolve) => { bridge.onsandboxready = resolve; });
  const isInitialized = new Promise((resolve) => { bridge.oninitialized = resolve; });
  bridge.onsizechange = ({ height }) => { frame.style.height = `${height}px`; };
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  // It passes calls on by itself. The tests want to know them.
  bridge.oncalltool = async (params) => {
    window.called.push(params);
    return client.callTool(params);
  };
  frame.src = sandbox;
  await isReady;
  await bridge.sendSandboxResourceReady({ html: page.text, csp: page._meta.ui.csp });
  await isInitialized;
  window.bridge = bridge;
  await bridge.sendToolInput({ arguments: input });
  await bridge.sendToolResult(result);
  return page._meta.ui;
};
