// Reads the file of a calendar feed with ical.js and node-ical, and prints what each has found: title,
// start and end by the id of the event.
import { readFileSync } from "node:fs";
import ICAL from "ical.js";
import ical from "node-ical";

const text = readFileSync(process.argv[2], "utf8");
const byICAL = new ICAL.Component(ICAL.parse(text))
  .getAllSubcomponents("vevent")
  .map((component) => new ICAL.Event(component))
  .map((event) => [event.uid, [event.summary, event.startDate.toJSDate(), event.endDate.toJSDate()]]);
const byNode = Object.values(ical.sync.parseICS(text))
  .filter(({ type }) => type === "VEVENT")
  .map(({ uid, summary, start, end }) => [uid, [summary, new Date(start), new Date(end)]]);
console.log(JSON.stringify({ "ical.js": Object.fromEntries(byICAL), "node-ical": Object.fromEntries(byNode) }));
