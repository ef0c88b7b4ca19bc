/* Additions to the reference: search while typing, copy buttons, and one code language on the whole page. */
"use strict";
(() => {
  const root = new URL("..", document.currentScript.src);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, values) => Object.assign(document.createElement(tag), values);

  // Copy buttons.
  for (const pre of all("pre.code")) {
    const block = make("div", { className: "block" });
    const button = make("button", { type: "button", className: "copy", textContent: "Copy" });
    const label = pre.getAttribute("aria-label");
    if (label) button.setAttribute("aria-label", `Copy ${label}`);
    pre.replaceWith(block);
    block.append(button, pre);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent.trimEnd());
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(pre);
        button.textContent = "Press Ctrl+C";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  // A chosen language is opened in every sample that has it.
  const STORAGE_KEY = "reference-language";
  const show = (language) => {
    for (const each of all(`.sample[data-language="${language}"]`)) each.open = true;
  };
  try {
    const kept = localStorage.getItem(STORAGE_KEY);
    if (/^\w+$/.test(kept)) show(kept);
  } catch { /* There is no storage, so the choice is not kept. */ }
  for (const sample of all(".sample")) {
    sample.querySelector("summary").addEventListener("click", (event) => {
      const before = sample.getBoundingClientRect().top;
      const { language } = sample.dataset;
      event.preventDefault();
      if (sample.open) return;
      show(language);
      scrollBy(0, sample.getBoundingClientRect().top - before);
      try { localStorage.setItem(STORAGE_KEY, language); } catch { /* As above. */ }
    });
  }

  // The menu marks the operation that is on the screen.
  const links = new Map(all(".inner a").map((link) => [link.hash.slice(1), link]));
  if (links.size) {
    const seen = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(target.getAttribute("aria-labelledby"))?.setAttribute("aria-current", "true");
      }
    }, { rootMargin: "-10% 0px -80%" });
    for (const section of all("section[aria-labelledby]")) seen.observe(section);
  }

  // Search. api_docs/search.py makes the entries and ranks them by the same rule.
  const input = document.getElementById("q");
  const list = make("ul", { className: "results", id: "results", hidden: true });
  const status = make("p", { className: "hidden" });
  const MAX_RESULTS = 12;
  let entries = null;
  let found = [];
  let chosen = -1;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Results");
  status.setAttribute("role", "status");
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-expanded": "false", "aria-controls": "results", "aria-autocomplete": "list",
  })) input.setAttribute(name, value);
  input.form.append(list, status);

  const load = () => {
    entries ??= fetch(new URL("api/docs/search.json", root))
      .then((answer) => (answer.ok ? answer.json() : []))
      .catch(() => { entries = null; return []; });
    return entries;
  };
  const rank = ([title, about, , words], queryWords) => {
    let score = 0;
    const [name, place] = [title.toLowerCase(), about.toLowerCase()];
    for (const word of queryWords) {
      if (name.includes(word)) score += name.startsWith(word) ? 0 : 1;
      else if (place.includes(word)) score += 2;
      else if (words.includes(word)) score += 4;
      else return -1;
    }
    return score;
  };
  const close = () => {
    list.hidden = true;
    chosen = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (number) => {
    chosen = (number + found.length) % found.length;
    [...list.children].forEach((item, n) => item.setAttribute("aria-selected", n === chosen));
    list.children[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", list.children[chosen].id);
  };
  const go = (entry) => { close(); location.assign(new URL(entry[2].slice(1), root)); };
  const search = async () => {
    const query = input.value;
    const queryWords = query.toLowerCase().split(/\s+/).filter(Boolean);
    const allEntries = await load();
    if (query !== input.value) return;
    if (!queryWords.length) { close(); status.textContent = ""; status.className = "hidden"; return; }
    const ranked = allEntries
      .map((entry, number) => ({ entry, number, score: rank(entry, queryWords) }))
      .filter(({ score }) => score >= 0)
      .sort((a, b) => a.score - b.score || a.number - b.number);
    found = ranked.slice(0, MAX_RESULTS).map(({ entry }) => entry);
    list.replaceChildren(...found.map((entry, number) => {
      const item = make("li", { id: `result-${number}`, textContent: entry[0] });
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      item.append(make("small", { textContent: entry[1] }));
      item.addEventListener("mousedown", (event) => event.preventDefault());
      item.addEventListener("click", () => go(entry));
      return item;
    }));
    close();
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    const many = ranked.length > MAX_RESULTS ? `, the first ${MAX_RESULTS} are listed` : "";
    status.textContent = found.length ? `${ranked.length} ${ranked.length === 1 ? "result" : "results"}${many}` : "Nothing found";
    status.className = found.length ? "hidden" : "results";
  };
  input.addEventListener("focus", load);
  input.addEventListener("input", search);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "Escape") { event.preventDefault(); close(); }
    if (event.key === "ArrowDown") { event.preventDefault(); choose(chosen + 1); }
    if (event.key === "ArrowUp") { event.preventDefault(); choose(chosen < 0 ? found.length - 1 : chosen - 1); }
    if (event.key === "Enter" && chosen >= 0) { event.preventDefault(); go(found[chosen]); }
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(input|textarea|select)$/i.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
    }
  });
})();
