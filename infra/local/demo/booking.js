// Books a service with the public API: choose a service, a day and a time, then enter a name and a phone number.
(function () {
  "use strict";
  const form = document.querySelector(".book"), texts = JSON.parse(form.dataset.texts);
  const days = form.querySelector(".days"), times = form.querySelector(".times");
  const status = form.querySelector("[role=status]"), later = form.querySelector(".later");
  const button = form.querySelector("[type=submit]");
  const key = () => Array.from({ length: 4 }, () => Math.random().toString(36).slice(2)).join("");
  const setStatus = (text) => { status.textContent = text; };
  // Show times in the time zone of the bakery: startLocal without its offset.
  const local = (slot) => new Date(slot.startLocal.slice(0, 19) + "Z");
  const format = (options) => new Intl.DateTimeFormat(document.documentElement.lang, { timeZone: "UTC", ...options });
  const dayName = format({ weekday: "short", day: "numeric", month: "long" });
  const fullName = format({ weekday: "long", day: "numeric", month: "long", hour: "2-digit", minute: "2-digit" });
  let slots = [], next = null, asked = 0, attempt = key();

  const option = (name, value, text, checked) => {
    const label = document.createElement("label"), input = document.createElement("input");
    Object.assign(input, { type: "radio", name, value, checked, required: true });
    label.append(input, document.createElement("span"));
    label.lastChild.textContent = text;
    return label;
  };
  const day = (slot) => slot.startLocal.slice(0, 10);
  const showTimes = () => {
    const chosen = form.elements.day ? form.elements.day.value : "";
    const here = slots.filter((slot) => day(slot) === chosen);
    times.replaceChildren(...here.map((slot) => option("time", slot.startAt, slot.startLocal.slice(11, 16), false)));
  };
  const show = () => {
    const firsts = slots.filter((slot, i) => i === 0 || day(slot) !== day(slots[i - 1]));
    const chosen = form.elements.day ? form.elements.day.value : "";
    const kept = firsts.some((slot) => day(slot) === chosen) ? chosen : firsts.length && day(firsts[0]);
    days.replaceChildren(...firsts.map((slot) => option("day", day(slot), dayName.format(local(slot)), day(slot) === kept)));
    later.hidden = !next;
    showTimes();
  };
  const load = async (from) => {
    const mine = ++asked;
    const query = from ? `?from=${encodeURIComponent(from)}` : "";
    setStatus(texts.searching);
    try {
      const answer = await fetch(`/api/public/services/${form.elements.service.value}/slots${query}`);
      const { data } = await answer.json();
      if (mine !== asked) return;
      if (!answer.ok) throw new Error(data.message);
      slots = (from ? slots : []).concat(data.slots);
      next = data.nextFrom || (!data.slots.length && data.nextAvailable && data.nextAvailable.startAt) || null;
      setStatus(slots.length ? "" : texts.booked_out);
      show();
    } catch {
      if (mine === asked) setStatus(texts.search_failed);
    }
  };

  form.addEventListener("change", (event) => {
    attempt = key();
    if (event.target.name === "service") load();
    if (event.target.name === "day") showTimes();
  });
  later.addEventListener("click", () => load(next));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    const fields = form.elements;
    button.disabled = true;
    setStatus(texts.booking);
    try {
      const answer = await fetch("/api/public/bookings", {
        method: "POST",
        headers: { "Content-Type": "application/json", "Idempotency-Key": attempt },
        body: JSON.stringify({
          serviceId: fields.service.value,
          startAt: fields.time.value,
          client: { name: fields.name.value, phone: fields.phone.value },
        }),
      });
      const { data } = await answer.json();
      if (answer.ok) return done(data);
      attempt = key();
      if (data.code === "slot_unavailable") {
        await load();
        setStatus(texts.sold);
      } else if (answer.status === 400) setStatus(texts.invalid_phone);
      else setStatus(texts.booking_failed);
    } catch {
      setStatus(texts.offline);
    } finally {
      button.disabled = false;
    }
  });
  const done = ({ booking, icsUrl }) => {
    const thanks = document.createElement("div"), link = document.createElement("a");
    const title = document.createElement("h3"), text = document.createElement("p");
    title.textContent = texts.booked;
    const values = { service: booking.serviceName, time: fullName.format(local(booking)), staff: booking.resourceName };
    text.textContent = texts.expects_you.replace(/{(\w+)}/g, (_, name) => values[name]);
    Object.assign(link, { href: icsUrl, textContent: texts.add_to_calendar });
    Object.assign(thanks, { className: "done", tabIndex: -1 });
    thanks.append(title, text, link);
    form.replaceWith(thanks);
    thanks.focus();
  };

  for (const link of document.querySelectorAll("[data-service]"))
    link.addEventListener("click", () => {
      form.elements.service.value = link.dataset.service;
      load();
    });
  form.hidden = false;
  load();
})();
