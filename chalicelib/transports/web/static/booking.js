// The booking pages: the reader's own time, arrow keys, the time to fill in the form, and the height in a frame.
(() => {
  const shown = Date.now();
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const formats = {};
  const format = (zone, long) => {
    const key = `${zone} ${long}`;
    formats[key] ||= new Intl.DateTimeFormat(document.documentElement.lang, {
      timeZone: zone,
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
      ...(long && { weekday: "short", day: "numeric", month: "short" }),
    });
    return formats[key];
  };
  for (const each of document.querySelectorAll("[data-own]")) {
    const at = new Date(each.dataset.at);
    const long = "long" in each.dataset;
    let mine;
    try {
      mine = format(own, true).format(at);
      if (mine === format(each.dataset.zone, true).format(at)) continue;
    } catch {
      continue; // The browser does not know the zone.
    }
    const text = document.createElement("small");
    text.textContent = each.dataset.own.replace("…", long ? mine : format(own, false).format(at));
    each.append(text);
  }
  // Arrows move between the free days, past the others, and from the edges to the other months.
  const month = document.querySelector(".month table");
  month?.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 }[event.key];
    const cell = event.target.closest("td");
    if (!step || !cell || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const cells = [...month.querySelectorAll("td")];
    let at = cells.indexOf(cell) + step;
    while (cells[at] && !cells[at].querySelector("a")) at += step;
    const next = cells[at]?.querySelector("a");
    const edge = `.turn [rel~=${step > 0 ? "next" : "prev"}]`;
    event.preventDefault();
    if (next && !next.checkVisibility()) location.hash = "month"; // Shows all weeks.
    (next || document.querySelector(edge))?.focus();
  });
  // Screen readers say what is put into a live region, and not what it has from the beginning.
  const count = document.getElementById("count");
  if (count) {
    const text = count.textContent;
    count.textContent = "";
    setTimeout(() => (count.textContent = text), 200);
  }
  for (const form of document.forms) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) return event.preventDefault();
      form.dataset.sent = "1";
      const elapsed = form.elements.namedItem("_elapsed");
      if (!elapsed) return;
      // A browser fills the form in at once. The server refuses such a form, so it is sent a moment later.
      const wait = shown + 1000 - Date.now();
      elapsed.value = Math.max(1000, Date.now() - shown);
      if (wait <= 0) return;
      event.preventDefault();
      setTimeout(() => form.submit(), wait);
    });
  }
  addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });
  if (parent !== window) {
    document.documentElement.classList.add("framed");
    const tell = () => {
      const bookingPageHeight = Math.ceil(document.body.getBoundingClientRect().height);
      parent.postMessage({ bookingPageHeight }, "*");
    };
    new ResizeObserver(tell).observe(document.body);
  }
  const problem = document.getElementById("problem");
  if (problem) problem.focus();
})();
