// Additions to the console's pages where scripts run: copy buttons, protection from double clicks, and the test chat.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  const label = button.textContent;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      // The clipboard is not available: select the text, so that it can be copied by hand.
      return getSelection().selectAllChildren(source);
    }
    button.textContent = button.dataset.done;
    setTimeout(() => { button.textContent = label; }, 2000);
  });
}

// A second click would cancel the first request, and with it the only page that shows a new token.
// A form that downloads a file leaves its page open, so its button must work again.
for (const form of document.querySelectorAll("form[method=post]:not([data-download])")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "yes";
    setTimeout(() => { for (const button of form.querySelectorAll("button")) button.disabled = true; });
  });
}
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("button")) button.disabled = false;
  }
});

// Escape, or a click outside, closes the open menu.
const menu = document.querySelector("details.switch");
if (menu) {
  addEventListener("click", (event) => { if (!menu.contains(event.target)) menu.open = false; });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

// Scroll the menu to the current page. scrollIntoView would also move the start of keyboard navigation.
for (const link of document.querySelectorAll("nav [aria-current]")) {
  const bar = link.parentElement;
  bar.scrollLeft = link.offsetLeft - bar.offsetLeft - (bar.clientWidth - link.offsetWidth) / 2;
}

// Times are in the workspace's zone. The zone is hidden if the reader's own zone has the same offset.
for (const zone of document.querySelectorAll("[data-offset]")) {
  const ownOffset = -new Date(zone.previousElementSibling.dateTime).getTimezoneOffset();
  zone.hidden = ownOffset === Number(zone.dataset.offset);
}

// Pages of bookings name the workspace's zone. A reader in another zone sees that, too, and the own time of a booking.
const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const note of document.querySelectorAll("[data-zone]")) {
  note.hidden = note.dataset.name === ownZone;
  note.textContent = `${note.dataset.zone} ${ownZone}.`;
}
for (const note of document.querySelectorAll("[data-own]")) {
  const start = new Date(note.dataset.own);
  const form = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
  note.hidden = -start.getTimezoneOffset() === Number(note.dataset.ahead);
  note.textContent = `${note.dataset.text} ${start.toLocaleString(document.documentElement.lang, form)}`;
}

// A preset ticks boxes. Without a script, the server ticks them and returns the page again.
for (const button of document.querySelectorAll("[data-ticks]")) {
  const ticks = button.dataset.ticks.split(" ");
  button.type = "button";
  button.addEventListener("click", () => {
    for (const box of document.querySelectorAll("[name=scopes]")) box.checked = ticks.includes(box.value);
  });
}

const problem = document.getElementById("problem");
if (problem) problem.focus();

const chat = document.querySelector("form[data-chat]");
if (chat) {
  const log = document.querySelector(".chat");
  const { chat: url, agent, csrf, failed, left } = chat.dataset;
  const input = chat.querySelector("textarea");
  let session = null;

  const addMessage = (text, kind) => {
    const line = document.createElement("p");
    line.className = kind;
    line.textContent = text;
    log.append(line);
    line.scrollIntoView({ block: "nearest" });
    return line;
  };
  const send = async (message) => {
    const answer = addMessage("…", "theirs");
    let text = "";
    const handle = (event) => {
      if (event.type === "start") session = event.sessionId;
      if (event.type === "chunk") text += event.content;
      if (event.type === "error") text += `\n${event.error}`;
      answer.textContent = text || "…";
    };
    const response = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
      body: JSON.stringify({ agentId: agent, message, sessionId: session, channel: "test" }),
    });
    if (!response.ok) {
      const { code, message: reason } = (await response.json()).data;
      answer.textContent = JSON.parse(chat.dataset.failures)[code] ?? reason;
      return;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "", part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + part.value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.startsWith("data: ")) handle(JSON.parse(line.slice(6)));
    }
    if (!text) answer.textContent = left;
  };
  chat.hidden = false;
  chat.addEventListener("submit", async (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    const message = input.value.trim();
    if (!message || chat.dataset.busy) return;
    chat.dataset.busy = "yes";
    input.value = "";
    addMessage(message, "mine");
    try {
      await send(message);
    } catch {
      addMessage(failed, "theirs");
    }
    delete chat.dataset.busy;
    input.focus();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      chat.requestSubmit();
    }
  });
}
