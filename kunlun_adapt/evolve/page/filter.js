"use strict";
// A page says with its markup what can be filtered. In #filter: the search field #text; boxes of a
// name, of whose values an entry's data of that name must have one; selects, whose value an entry's
// data of the select's id must be, or, with data-of="NAME", which of several data the boxes of that
// name are about (data-NAME followed by the value); and boxes with data-hides="NAME=VALUE". Entries
// have the class "entry", groups of them "group"; #shown counts those that fit its data-counts.
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
  const data = (name) => name + (selects.find((select) => select.dataset.of === name)?.value ?? "");

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

  // An address may name an entry: it is shown and opened, whatever the filter says.
  const named = () => {
    try {
      const entry = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      return entry?.classList.contains("entry") ? entry : null;
    } catch {
      return null; // no address that we made
    }
  };

  const apply = (kept) => {
    const words = field("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = names.map((name) => [data(name), new Set(on(name))]);
    const hiding = switches.filter((one) => one.checked).map((one) => one.dataset.hides.split("="));
    const counted = field("shown").dataset.counts;
    let count = 0;
    for (const entry of entries) {
      const said = entry.dataset;
      const fits =
        chosen.every(([name, values]) => (said[name] ?? "").split(" ").some((value) => values.has(value))) &&
        selects.every(({ id, value }) => !value || said[id] === undefined || said[id] === value) &&
        !hiding.some(([name, value]) => said[name] === value) &&
        words.every((word) => texts.get(entry).includes(word));
      entry.hidden = !fits && entry !== kept;
      if (!entry.hidden && entry.matches(counted)) count += 1;
    }
    for (const group of document.querySelectorAll(".group"))
      group.hidden = !group.querySelector(".entry:not([hidden])");
    const all = entries.filter((entry) => entry.matches(counted)).length;
    field("shown").textContent = `${count} of ${all} ${field("shown").dataset.what}`;
  };

  const follow = () => {
    const entry = named();
    read();
    apply(entry);
    if (!entry) return;
    for (const details of entry.querySelectorAll("details")) details.open = true;
    entry.scrollIntoView();
  };

  form.addEventListener("input", () => { write(); apply(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", follow);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input[type=search], select")) return;
    event.preventDefault();
    field("text").focus();
  });
  follow();
})();
