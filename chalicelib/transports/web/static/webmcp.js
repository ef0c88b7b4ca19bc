// The tools of a booking page for the agent of the visitor's browser (WebMCP), also on pages with a chat widget.
// Each call goes to the page's endpoint.
(async () => {
  const context = document.modelContext;
  const path = document.currentScript?.dataset.tools;
  if (!context?.registerTool || !path) return;
  let id = 0;
  const send = async (method, params) => {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: ++id, method, params }),
    });
    const { result, error, data } = await response.json();
    if (!result) throw new Error((error || data).message);
    return result;
  };
  const { tools } = await send("tools/list", {});
  for (const { name, title, description, inputSchema, annotations } of tools) {
    await context.registerTool({
      name,
      title,
      description,
      inputSchema,
      annotations: { readOnlyHint: annotations.readOnlyHint, untrustedContentHint: true },
      execute: async (input) => {
        const result = await send("tools/call", { name, arguments: input });
        // On the booking page, what is prepared opens filled in. Other pages stay, and the agent shows the link.
        const url = name.startsWith("prepare_") && !result.isError && result.structuredContent.url;
        if (url && new URL(url).origin === origin) setTimeout(() => location.assign(url));
        return result;
      },
    });
  }
  // A page whose tools are off, or that another widget has given them, gets none.
})().catch(() => {});
