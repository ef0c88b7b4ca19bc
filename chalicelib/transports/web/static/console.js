// Additions to the console's pages where scripts run: copy buttons, protection from double clicks, and the test chat.
"use strict";

// On a low screen, the links of the menu scroll.
const here = document.querySelector(".bar nav [aria-current]");
const nav = here?.closest("nav");
// ``scrollIntoView`` would also move the place where the Tab key begins.
if (nav) nav.scrollTop = here.offsetTop - nav.offsetTop - nav.clientHeight / 2;

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

// What was typed is kept until the next page arrives, so that it survives a lost connection and the way back. Hidden fields are
// those of the new page.
const KEPT = "kept-form";
const offline = document.getElementById("offline");
const typedControls = (form) => [...form.elements].filter((each) => each.name && !/hidden|password|file|submit|button/.test(each.type));
const keep = (form) => sessionStorage.setItem(KEPT, JSON.stringify({
  path: location.pathname + location.search,
  form: [...document.forms].indexOf(form),
  values: typedControls(form).map((each) => [each.name, each.value, each.checked]),
}));
if (offline) {
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  sessionStorage.removeItem(KEPT);
  const isBack = performance.getEntriesByType("navigation")[0]?.type !== "navigate";
  const form = kept?.path === location.pathname + location.search && isBack ? document.forms[kept.form] : null;
  const controls = form ? typedControls(form) : [];
  if (controls.length === kept?.values.length) {
    controls.forEach((each, index) => {
      const [name, value, checked] = kept.values[index];
      if (each.name === name && /checkbox|radio/.test(each.type)) each.checked = checked;
      else if (each.name === name) each.value = value;
    });
  }
  for (const each of document.querySelectorAll("form[method=post]")) {
    each.addEventListener("submit", (event) => {
      if (typedControls(each).length) keep(each);
      offline.hidden = navigator.onLine;
      if (navigator.onLine) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      offline.scrollIntoView({ block: "center" });
    });
  }
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

// A phone's photo has more bytes than a form may send. It is reduced before it is sent.
const reduced = async (file) => {
  if (file.size < 1e6 || !/^image\/(jpeg|png|webp|heic)/.test(file.type)) return file;
  // A browser that cannot read an image sends it as it is, and the server says why it is refused.
  const image = await createImageBitmap(file).catch(() => null);
  if (!image) return file;
  const scale = Math.min(1, 2048 / Math.max(image.width, image.height));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width * scale, image.height * scale];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((resolve) => { canvas.toBlob(resolve, /png|webp/.test(file.type) ? "image/webp" : "image/jpeg", 0.85); });
  return blob && blob.size < file.size ? new File([blob], file.name, { type: blob.type }) : file;
};
for (const input of document.querySelectorAll("input[type=file]")) {
  input.addEventListener("change", async () => {
    const buttons = [...input.form.querySelectorAll("button:not([disabled])")];
    for (const button of buttons) button.disabled = true;
    const files = new DataTransfer();
    for (const file of input.files) files.items.add(await reduced(file));
    input.files = files.files;
    for (const button of buttons) button.disabled = false;
  });
}

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
// The browser's zone chooses the country of a new workspace, until the person does.
for (const select of document.querySelectorAll("[data-own-zone]")) {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const own = [...select.options].find((option) => option.value.endsWith(` ${timeZone}`));
  if (own) own.selected = true;
}
for (const button of document.querySelectorAll("[data-zone-field]")) {
  const input = document.getElementById(button.dataset.zoneField);
  if (!input.value) input.value = ownZone;
  button.hidden = input.value === ownZone;
  button.textContent = `${button.dataset.text} ${ownZone}`;
  button.addEventListener("click", () => {
    input.value = ownZone;
    button.hidden = true;
    input.focus();
  });
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

// Consent must not be given by a click or a key that was meant for another page. The button becomes active when the page has
// been visible with the focus for 800 ms and the person has done something on it. Voice control makes no gestures: for it, five
// seconds are enough. Without a script, the server asks again on a second page.
const deliberate = document.querySelector("[data-deliberate]");
if (deliberate) {
  let since = null;
  let acted = false;
  const settle = () => {
    const shown = since === null ? 0 : performance.now() - since;
    deliberate.disabled = shown < (acted ? 800 : 5000);
    for (const review of deliberate.form.querySelectorAll("[name=review]")) review.disabled = !deliberate.disabled;
  };
  const restart = () => {
    since = document.visibilityState === "visible" && document.hasFocus() ? performance.now() : null;
    acted = false;
    for (const pause of [0, 801, 5001]) setTimeout(settle, pause);
    settle();
  };
  // A window that opens under a resting pointer reports a movement of no distance.
  const note = (event) => {
    if (!event.isTrusted || (event.type === "pointermove" && !event.movementX && !event.movementY)) return;
    acted = true;
    setTimeout(settle);  // After the click that this may be a part of.
  };
  for (const type of ["focus", "blur", "pageshow"]) addEventListener(type, restart);
  document.addEventListener("visibilitychange", restart);
  for (const type of ["pointermove", "pointerup", "keydown", "wheel", "touchmove"]) addEventListener(type, note, { passive: true });
  restart();
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
// Free times of a calendar's column are one stop of the Tab key. Arrows move between them.
for (const column of document.querySelectorAll(".cal .col")) {
  const gaps = [...column.querySelectorAll(".free a")];
  const stop = (at) => gaps.forEach((gap, n) => (gap.tabIndex = n === at ? 0 : -1));
  stop(0);
  column.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const next = step && gaps[gaps.indexOf(event.target) + step];
    if (!next || !gaps.includes(event.target)) return;
    event.preventDefault();
    stop(gaps.indexOf(next));
    next.focus();
  });
}
