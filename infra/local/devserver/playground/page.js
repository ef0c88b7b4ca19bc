"use strict";

const given = new URLSearchParams(location.search);
const form = document.querySelector("form");
for (const field of form.elements) if (field.name) field.value = given.get(field.name) || "";
// Leave empty fields out of the URL.
form.addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (!value) formData.delete(name);
});
if (given.get("dir") === "rtl") document.documentElement.dir = "rtl";

if (given.get("agent")) {
  const script = document.createElement("script");
  const address = `${location.origin}/widget.js`;
  const policy = window.trustedTypes && trustedTypes.createPolicy("widget-address", { createScriptURL: (url) => url });
  script.src = policy ? policy.createScriptURL(address) : address;
  script.async = true;
  for (const name of ["agent", "language", "theme", "position", "color", "title"])
    if (given.get(name)) script.dataset[name] = given.get(name);
  // Show the element's own HTML, so that values are escaped correctly.
  document.querySelector("code").textContent = script.outerHTML.replace(' async=""', " async");
  document.querySelector("section").hidden = false;
  document.body.append(script);
}
