"use strict";
// A page says with its markup what can be filtered. In #filter: the search field #text; boxes of a
// name, of whose values an entry's data of that name must have one; selects, whose value an entry's
// data of the select's id must be; and boxes with data-hides="NAME=VALUE". Entries have the class
// "entry", groups of them "group"; #shown counts those that fit its data-counts.
(() => {
  const form = document.getElementById("filter");
  const field = (id) => document.getElementById(id);
  const boxes = [...form.querySelectorAll("input[type=checkbox][name]")];
  const names = [...new Set(boxes.map((box) => box.name))];
  const selects = [...form.querySelectorAll("select")];
  const switches = [...form.querySelectorAll("input[data-hides]")];
  const entries = [...document.querySelectorAll(".entry")];
  const texts = new Map(entries.map((entry) => [entry, entry.textContent.toLowerCase()]));
  const of = (name) => boxes.filter((box) => box.name === name);
  const on = (name) => of(name).filter((box) => box.checked).map((box) => box.value);

  // A filter stands behind the page's "#?", so that it can be sent to somebody.
  const read = () => {
    const hash = location.hash;
    if (!hash.startsWith("#?")) return;
    const wanted = new URLSearchParams(hash.slice(2));
    field("text").value = wanted.get("text") || "";
    for (const select of selects) select.value = wanted.get(select.id) || "";
    for (const one of switches) one.checked = wanted.get(one.id) === "1";
    for (const box of boxes) {
      const values = wanted.get(box.name);
      box.checked = !values || values.split(",").includes(box.value);
    }
  };

  const write = () => {
    const wanted = new URLSearchParams();
    if (field("text").value) wanted.set("text", field("text").value);
    for (const select of selects) if (select.value) wanted.set(select.id, select.value);
    for (const name of names) if (on(name).length < of(name).length) wanted.set(name, on(name).join(","));
    for (const one of switches) if (one.checked) wanted.set(one.id, "1");
    history.replaceState(null, "", `#?${wanted}`);
  };

  const apply = () => {
    const words = field("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = names.map((name) => [name, new Set(on(name))]);
    const hiding = switches.filter((one) => one.checked).map((one) => one.dataset.hides.split("="));
    let count = 0;
    for (const entry of entries) {
      const said = entry.dataset;
      const fits =
        chosen.every(([name, values]) => (said[name] ?? "").split(" ").some((value) => values.has(value))) &&
        selects.every(({ id, value }) => !value || said[id] === undefined || said[id] === value) &&
        !hiding.some(([name, value]) => said[name] === value) &&
        words.every((word) => texts.get(entry).includes(word));
      entry.hidden = !fits;
      if (fits && entry.matches(field("shown").dataset.counts)) count += 1;
    }
    for (const group of document.querySelectorAll(".group"))
      group.hidden = !group.querySelector(".entry:not([hidden])");
    field("shown").textContent = `${count} ${field("shown").dataset.what} shown`;
  };

  form.addEventListener("input", () => { write(); apply(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => { read(); apply(); });
  read();
  apply();
})();
