"use strict";
(() => {
  const form = document.getElementById("filter");
  const field = (id) => document.getElementById(id);
  const boxes = [...form.querySelectorAll('input[name="risk"]')];
  const entries = [...document.querySelectorAll(".entry")];
  const texts = new Map(entries.map((entry) => [entry, entry.textContent.toLowerCase()]));
  const selects = ["landing", "family", "status"];

  // A filter stands behind the page's "#?", so that it can be sent to somebody.
  const read = () => {
    const hash = location.hash;
    if (!hash.startsWith("#?")) return;
    const wanted = new URLSearchParams(hash.slice(2));
    field("text").value = wanted.get("text") || "";
    for (const name of selects) field(name).value = wanted.get(name) || "";
    field("open").checked = wanted.get("open") === "1";
    const risks = wanted.get("risk");
    for (const box of boxes) box.checked = !risks || risks.split(",").includes(box.value);
  };

  const write = () => {
    const wanted = new URLSearchParams();
    if (field("text").value) wanted.set("text", field("text").value);
    for (const name of selects) if (field(name).value) wanted.set(name, field(name).value);
    const on = boxes.filter((box) => box.checked).map((box) => box.value);
    if (on.length < boxes.length) wanted.set("risk", on.join(","));
    if (field("open").checked) wanted.set("open", "1");
    history.replaceState(null, "", `#?${wanted}`);
  };

  const apply = () => {
    const words = field("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const risks = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let count = 0;
    for (const entry of entries) {
      const said = entry.dataset;
      const fits =
        risks.has(said.risk) &&
        selects.every((name) => !field(name).value || said[name] === undefined || said[name] === field(name).value) &&
        !(field("open").checked && said.done === "yes") &&
        words.every((word) => texts.get(entry).includes(word));
      entry.hidden = !fits;
      if (fits && said.done === undefined) count += 1;
    }
    for (const section of document.querySelectorAll("section.landing"))
      section.hidden = !section.querySelector(".entry:not([hidden])");
    field("shown").textContent = `${count} changes shown`;
  };

  form.addEventListener("input", () => { write(); apply(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => { read(); apply(); });
  read();
  apply();
})();
