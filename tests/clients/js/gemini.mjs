// A LangChain agent with Gemini: it lists the tools, lets its model call one, and returns the
// result to the model. SERVER_URL, API_KEY and GEMINI_URL are where both are.
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";

const { SERVER_URL, API_KEY, GEMINI_URL } = process.env;

async function rpc(method, params) {
  const answer = await fetch(SERVER_URL, {
    method: "POST",
    headers: { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = await answer.json();
  if (error) throw new Error(error.message);
  return result;
}

const { tools } = await rpc("tools/list");
const converted = tools.map(({ name, description, inputSchema }) => tool(() => "", { name, description, schema: inputSchema }));
const gemini = new ChatGoogleGenerativeAI({ model: "gemini-2.5-flash", apiKey: "none", baseUrl: GEMINI_URL, maxRetries: 0 });
const model = gemini.bindTools(converted);

const conversation = [new HumanMessage("Call the tool.")];
const asked = await model.invoke(conversation);
conversation.push(asked);
for (const { id, name, args } of asked.tool_calls) {
  const { content, isError } = await rpc("tools/call", { name, arguments: args });
  const status = isError ? "error" : "success";
  conversation.push(new ToolMessage({ content: content[0].text, tool_call_id: id, name, status }));
}
await model.invoke(conversation);
