// A page inside a chat (transports.mcp_apps). The client sends results of tools by postMessage, as
// JSON-RPC 2.0 (MCP Apps, 2026-01-26). All data are other people's words: they become text nodes.
(() => {
  "use strict";
  const config = JSON.parse(document.getElementById("config").textContent);
  const root = document.getElementById("app");
  const host = window.parent;
  let context = {}, capabilities = {}, input = {}, text = config.texts.en, locale = "en";

  // ---- messages
  const waiting = new Map();
  let lastId = 0;
  const post = (message) => host.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const ask = (method, params) => new Promise((resolve, reject) => {
    waiting.set(++lastId, { resolve, reject });
    post({ id: lastId, method, params });
  });
  const notices = {
    "ui/notifications/tool-input": (params) => { input = params.arguments || {}; },
    "ui/notifications/tool-result": (params) => show(params),
    "ui/notifications/tool-cancelled": () => say(text.cancelled),
    "ui/notifications/host-context-changed": (params) => applyContext(params),
  };
  addEventListener("message", ({ source, data }) => {
    if (source !== host || !data || data.jsonrpc !== "2.0") return;
    if (data.method === undefined) {
      const asked = waiting.get(data.id);
      waiting.delete(data.id);
      if (asked) data.error ? asked.reject(new Error(data.error.message)) : asked.resolve(data.result);
    } else if (data.id === undefined) {
      const notice = notices[data.method];
      if (notice) notice(data.params || {});
    } else if (["ping", "ui/resource-teardown"].includes(data.method)) {
      post({ id: data.id, result: {} });
    } else {
      post({ id: data.id, error: { code: -32601, message: "Method not found" } });
    }
  });

  const applyContext = (changed) => {
    context = { ...context, ...changed };
    const language = String(context.locale || navigator.language || "en");
    try { locale = Intl.getCanonicalLocales(language)[0]; } catch { locale = "en"; }
    const known = locale.startsWith("ru") ? "ru" : "en";
    text = config.texts[known];
    document.documentElement.lang = known;
    const dark = context.theme ? context.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  };

  // What a tool returned: an object, or the JSON of its text. A failure has a message.
  const read = (result) => {
    const words = (result.content || []).map((part) => part.text || "").join("");
    let data = result.structuredContent;
    if (!data) try { data = JSON.parse(words).data; } catch { data = undefined; }
    if (result.isError || !data || typeof data !== "object") {
      const said = data && (data.message || (data.messages || []).map((each) => each.content).join(" "));
      throw new Error(said || words || text.failed);
    }
    return data;
  };
  const call = async (name, args) => read(await ask("tools/call", { name, arguments: args }));
  const canCall = () => Boolean(capabilities.serverTools);

  // ---- elements
  const make = (space, tag, attributes, parts) => {
    const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "onclick" || name === "onchange" || name === "onerror") element.addEventListener(name.slice(2), value);
      else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...parts.flat().filter((part) => part !== null && part !== undefined && part !== false));
    return element;
  };
  const el = (tag, attributes, ...parts) => make(null, tag, attributes, parts);
  const svg = (tag, attributes, ...parts) => make("http://www.w3.org/2000/svg", tag, attributes, parts);
  const draw = (...parts) => {
    const id = document.activeElement && document.activeElement.id;
    root.replaceChildren(...parts.flat().filter(Boolean));
    // A keyboard stays where it was.
    const again = id && document.getElementById(id);
    if (again) again.focus();
  };
  const say = (words, kind) => draw(el("p", { class: kind || "muted" }, words));
  const fill = (pattern, values) => pattern.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

  // ---- formats
  const money = (amount, currency = config.currency) => {
    const digits = currency === config.currency ? config.digits : 2;
    const value = Number(amount) / 10 ** digits;
    const shown = value % 1 ? digits : 0;
    try {
      return new Intl.NumberFormat(locale, { style: "currency", currency, currencyDisplay: "narrowSymbol", minimumFractionDigits: shown, maximumFractionDigits: digits }).format(value);
    } catch { return `${value.toFixed(shown)} ${currency}`; }
  };
  const number = (value) => new Intl.NumberFormat(locale).format(value);
  // A local time has its own offset, so its digits are shown, and not those of this device.
  const day = (local, options = { weekday: "long", day: "numeric", month: "long" }) =>
    new Intl.DateTimeFormat(locale, { ...options, timeZone: "UTC" }).format(new Date(`${local.slice(0, 10)}T00:00:00Z`));
  const time = (local) => local.slice(11, 16);
  const moved = (date, days) => new Date(Date.parse(`${date}T00:00:00Z`) + days * 864e5).toISOString().slice(0, 10);
  const today = () => new Intl.DateTimeFormat("sv-SE", { timeZone: context.timeZone }).format(new Date());
  const byDay = (rows, local) => {
    const days = new Map();
    for (const row of rows) {
      const date = local(row).slice(0, 10);
      days.set(date, [...(days.get(date) || []), row]);
    }
    return [...days].sort(([a], [b]) => (a < b ? -1 : 1));
  };

  // ---- a link that a person opens
  const openLink = async (url) => {
    try {
      const result = await ask("ui/open-link", { url });
      return !(result && result.isError);
    } catch { return false; }
  };
  const prepared = (lines, url, label) => {
    const note = el("p", { class: "muted" }, text.nothingDone);
    const button = el("button", { class: "main", id: "open", onclick: async () => {
      if (!await openLink(url)) note.replaceChildren(url);
    } }, label);
    return el("section", { class: "note" }, lines, note, button);
  };

  // ---- free times
  const times = { prepared: null, problem: "", busy: false };
  const drawTimes = (data) => {
    const first = input.firstDay || (data.times[0] || data.next || { startAt: today() }).startAt.slice(0, 10);
    const last = input.lastDay || moved(first, 6);
    const length = Math.min(30, Math.max(0, (Date.parse(last) - Date.parse(first)) / 864e5 || 6));
    const people = new Map(data.termsByStaff.map((each) => [each.id, each.name]));
    for (const each of data.times) for (const person of each.staff) people.set(person.id, person.name);
    for (const [id, name] of times.people || []) if (!people.has(id)) people.set(id, name);
    times.people = people;
    const find = async (changes) => {
      times.prepared = null;
      await load("find_free_times", { ...input, ...changes }, drawTimes);
    };
    const from = (date) => find({ firstDay: date, lastDay: moved(date, length) });
    const terms = (id) => data.termsByStaff.find((each) => each.id === id);
    const choose = async (slot) => {
      const { firstDay, lastDay, ...same } = input;
      times.prepared = null;
      try {
        times.prepared = await call("prepare_booking", { ...same, startAt: slot.startAt });
        times.problem = "";
      } catch (error) { times.problem = error.message; }
      drawTimes(data);
      if (times.prepared) openLink(times.prepared.url);
    };
    const slot = (each, index) => el("li", {}, el("button", { id: `t${index}`, disabled: !canCall(), onclick: () => choose(each) },
      time(each.startAt), each.placesLeft !== undefined ? ` · ${fill(text.left, { n: each.placesLeft, all: each.places })}` : "",
      people.size > 1 && each.staff.length === 1 ? ` · ${each.staff[0].name}` : ""));
    const made = times.prepared;
    const numbered = new Map(data.times.map((each, index) => [each, index]));
    const controls = canCall() && el("div", { class: "row" },
      people.size > 1 && el("label", {}, text.staff, el("select", { id: "staff", onchange: (event) => find({ staffId: event.target.value || undefined }) },
        el("option", { value: "" }, text.anyone),
        [...people].map(([id, name]) => el("option", { value: id, selected: id === input.staffId },
          name, terms(id) ? ` · ${money(terms(id).price)} · ${fill(text.minutes, { n: terms(id).minutes })}` : "")))),
      el("label", {}, text.day, el("input", { id: "day", type: "date", value: first, min: today(), onchange: (event) => event.target.value && from(event.target.value) })),
      first > today() && el("button", { id: "earlier", onclick: () => from([moved(first, -length - 1), today()].sort()[1]) }, text.earlier),
      el("button", { id: "later", onclick: () => from(data.more && data.times.length ? data.times.at(-1).startAt.slice(0, 10) : moved(last, 1)) }, text.later));
    draw(
      el("h1", {}, data.service),
      controls,
      times.problem && el("p", { class: "wrong", role: "alert" }, times.problem),
      made && prepared([
        el("strong", {}, `${day(made.startAt)}, ${time(made.startAt)}`),
        el("p", {}, `${made.service} · ${made.staff} · ${fill(text.minutes, { n: made.minutes })} · ${made.price ? money(made.price) : text.free}`),
      ], made.url, text.open),
      byDay(data.times, (each) => each.startAt).map(([date, slots]) => el("section", {},
        el("h2", {}, day(date)), el("ul", { class: "chips" }, slots.map((each) => slot(each, numbered.get(each)))))),
      !data.times.length && el("p", {}, text.noTimes),
      !data.times.length && data.next && el("p", {}, el("button", { id: "next", disabled: !canCall(), onclick: () => from(data.next.startAt.slice(0, 10)) },
        fill(text.nextFree, { day: `${day(data.next.startAt)}, ${time(data.next.startAt)}` }))),
      el("p", { class: "muted" }, data.timezone),
    );
  };

  // ---- products
  const basket = new Map();
  let order = null, orderProblem = "";
  const drawProducts = (data) => {
    const found = data.products || (data.product ? [data.product] : []);
    const change = (product, by) => {
      const count = Math.max(0, (basket.get(product.id)?.count || 0) + by);
      count ? basket.set(product.id, { count, product }) : basket.delete(product.id);
      order = null;
      drawProducts(data);
    };
    const card = (product) => {
      const variant = (product.variants || [])[0] || {};
      const price = variant.price || (product.price_range || {}).min;
      const isThere = (variant.availability || {}).available !== false;
      const image = ((product.media || [])[0] || {}).url;
      const count = basket.get(product.id)?.count || 0;
      return el("li", { class: "card" },
        image && el("img", { src: image, alt: "", loading: "lazy", onerror: (event) => event.target.remove() }),
        el("strong", {}, product.title),
        price && el("span", {}, money(price.amount, price.currency)),
        el("span", { class: "muted" }, isThere ? text.inStock : text.outOfStock),
        product.description && product.description.plain !== product.title && el("span", { class: "muted" }, product.description.plain),
        canCall() && isThere && el("div", { class: "row" },
          el("button", { id: `less-${product.id}`, disabled: !count, "aria-label": fill(text.fewer, { name: product.title }), onclick: () => change(product, -1) }, "−"),
          el("span", { class: "count" }, String(count)),
          el("button", { id: `more-${product.id}`, "aria-label": fill(text.more, { name: product.title }), onclick: () => change(product, 1) }, "+")));
    };
    const prepare = async () => {
      const items = [...basket].map(([productId, { count }]) => ({ productId, quantity: count }));
      const address = input.business ? { business: input.business } : {};
      try {
        order = await call("prepare_order", { ...address, items });
        orderProblem = "";
      } catch (error) { orderProblem = error.message; }
      drawProducts(data);
      if (order) openLink(order.url);
    };
    const sum = [...basket.values()].reduce((total, { count, product }) => total + count * (((product.variants || [])[0] || {}).price || { amount: 0 }).amount, 0);
    draw(
      el("h1", {}, text.products),
      found.length ? el("ul", { class: "cards" }, found.map(card)) : el("p", {}, text.noProducts),
      orderProblem && el("p", { class: "wrong", role: "alert" }, orderProblem),
      order && prepared([
        el("ul", {}, order.lines.map((line) => el("li", {}, `${line.name} × ${line.quantity}: ${money(line.price * line.quantity)}`))),
        el("p", {}, el("strong", {}, fill(text.total, { amount: money(order.total) }))),
      ], order.url, text.openOrder),
      basket.size > 0 && !order && el("p", {}, el("button", { class: "main", id: "order", onclick: prepare }, `${text.order} · ${money(sum)}`)),
    );
  };

  // ---- bookings of members
  const drawDay = (data) => {
    const rows = [...data.bookings].sort((a, b) => (a.startAt < b.startAt ? -1 : 1));
    const off = ["cancelled", "no_show"];
    const state = (status) => text[status === "cancelled" ? "cancelled_booking" : status] || status;
    const row = (each) => el("li", {},
      el("span", { class: "time" }, `${time(each.startLocal)} · ${fill(text.minutes, { n: each.durationMin })}`),
      el("span", {}, el("strong", { class: off.includes(each.status) && "off" }, each.client.name || text.noName), ` · ${each.serviceName}`,
        each.price ? ` · ${money(each.price)}` : "", each.status !== "confirmed" && el("span", { class: "muted" }, ` · ${state(each.status)}`)));
    draw(
      byDay(rows, (each) => each.startLocal).map(([date, ofDay]) => el("section", {},
        el("h1", {}, day(date)),
        [...new Set(ofDay.map((each) => each.resourceId))].map((id) => {
          const own = ofDay.filter((each) => each.resourceId === id);
          return [el("h2", {}, own[0].resourceName), el("ul", { class: "list" }, own.map(row))];
        }).flat())),
      !rows.length && el("p", {}, text.noBookings),
      data.total > rows.length && el("p", { class: "muted" }, fill(text.shownOf, { n: rows.length, total: number(data.total) })),
    );
  };

  // ---- report of members
  const chart = (title, rows, head) => {
    const top = Math.max(1, ...rows.map((row) => row.value));
    return el("figure", {},
      el("figcaption", {}, el("strong", {}, title)),
      svg("svg", { viewBox: `0 0 ${rows.length * 10} 60`, preserveAspectRatio: "none", "aria-hidden": "true" },
        rows.map((row, index) => svg("rect", { x: index * 10 + 1, width: 8, y: 60 - 60 * row.value / top, height: 60 * row.value / top }))),
      el("details", {}, el("summary", {}, text.asTable), table(head, rows.map((row) => [row.name, row.shown]), title)));
  };
  const table = (head, rows, title) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, el("table", {},
    el("thead", {}, el("tr", {}, head.map((name, index) => el("th", { scope: "col", class: index ? "n" : undefined }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, index) => index ? el("td", { class: "n" }, cell) : el("th", { scope: "row" }, cell)))))));
  const short = (date) => day(date, { day: "numeric", month: "short" });
  const drawReport = async (data) => {
    const leads = [
      el("h1", {}, `${text.leads}: ${number(data.created)}`),
      el("p", { class: "muted" }, fill(text.newClients, { n: number(data.clients.new) })),
      data.series.length > 0 && chart(text.leadsByDay, data.series.map((each) => ({ name: short(each.date), value: each.created, shown: number(each.created) })), [text.day, text.leads]),
      data.bySource.length > 0 && table([text.source, text.leads], data.bySource.map((each) => [each.source, number(each.count)]), text.source),
    ];
    draw(leads);
    if (!capabilities.serverResources) return;
    const query = new URLSearchParams(Object.entries(input).filter(([name]) => ["from", "to"].includes(name)));
    let report;
    try {
      const answer = await ask("resources/read", { uri: `report://workspace-automation/bookings${query.size ? `?${query}` : ""}` });
      report = JSON.parse(answer.contents[0].text);
    } catch { return; } // The key may not read bookings.
    const share = (each) => each.openMinutes ? `${Math.round(100 * each.soldMinutes / each.openMinutes)} %` : "";
    const parts = (title, first, rows, hasLoad) => rows.length > 0 && [el("h2", {}, title), table([first, text.revenue, text.visits, ...(hasLoad ? [text.load] : [])],
      rows.map((each) => [each.name || text.noName, money(each.revenue), number(each.visits), ...(hasLoad ? [share(each)] : [])]), title)];
    draw(
      el("h1", {}, `${text.bookings}: ${number(report.totals.bookings)} · ${money(report.totals.revenue)}`),
      !report.isComplete && el("p", { class: "note" }, text.counting),
      report.weeks.length > 0 && chart(`${text.revenue}, ${text.byWeek}`, report.weeks.map((week) => ({ name: short(week.date), value: week.revenue, shown: money(week.revenue) })), [text.week, text.revenue]),
      (parts(text.byService, text.service, report.services, false) || []),
      (parts(text.byStaff, text.member, report.staff, true) || []),
      leads,
    );
  };

  // ---- results
  const views = { times: drawTimes, products: drawProducts, day: drawDay, report: drawReport };
  const show = (result) => {
    try { views[config.app](read(result)); } catch (error) { say(error.message, "wrong"); }
  };
  const load = async (name, args, view) => {
    try {
      const data = await call(name, args);
      input = args;
      times.problem = "";
      view(data);
    } catch (error) { say(error.message, "wrong"); }
  };

  new ResizeObserver(() => {
    post({ method: "ui/notifications/size-changed", params: { height: Math.ceil(document.documentElement.getBoundingClientRect().height) } });
  }).observe(document.documentElement);
  applyContext({});
  say(text.waiting);
  ask("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name: config.app, version: "1" },
    appCapabilities: {},
  }).then((answer) => {
    capabilities = answer.hostCapabilities || {};
    applyContext(answer.hostContext || {});
    say(text.waiting);
    post({ method: "ui/notifications/initialized" });
  });
})();
