// Without this script all rows are shown, in the order of the files, and figures open as files.
"use strict";
// A filter above each table of claims: the verdict, and words that all have to occur. Both are
// part of the address: ?verdict=contradicted&find=banana.
const filter = (table, state) => {
  const rows = [...table.tBodies[0].rows];
  const kinds = [...new Set(rows.map((row) => row.dataset.verdict))];
  if (rows.length < 9) return;
  const form = document.createElement("search");
  form.className = "find";
  const options = ["all", ...kinds].map((kind) => `<option>${kind}</option>`).join("");
  form.innerHTML = `<label>Verdict <select name="verdict">${options}</select></label>
    <label>Find <input type="search" name="find" autocomplete="off"></label>
    <output></output>`;
  const [verdict, find] = form.querySelectorAll("select, input");
  const apply = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = (verdict.value !== "all" && row.dataset.verdict !== verdict.value)
        || !words.every((word) => text.includes(word));
    }
    form.querySelector("output").textContent =
      `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  const keep = () => {
    const query = new URLSearchParams();
    if (verdict.value !== "all") query.set("verdict", verdict.value);
    if (find.value.trim()) query.set("find", find.value.trim());
    const address = query.size ? `?${query}` : location.pathname;
    try { history.replaceState(null, "", address + location.hash); } catch { /* of a file */ }
  };
  verdict.value = kinds.includes(state.get("verdict")) ? state.get("verdict") : "all";
  find.value = state.get("find") || "";
  form.addEventListener("input", () => { apply(); keep(); });
  table.parentElement.before(form);
  apply();
  // A link to a row shows it, whatever the filter.
  if (rows.some((row) => row.hidden && `#${row.id}` === location.hash)) {
    verdict.value = "all";
    find.value = "";
    apply();
    document.getElementById(location.hash.slice(1)).scrollIntoView();
  }
};

// Headers of longer tables sort them: upward, downward, and back to the order of the file.
const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
const value = (row, column) => {
  const text = row.cells[column].textContent.trim();
  const number = parseFloat(text.replace(/,/g, "").replace("∞", "Infinity"));
  return Number.isNaN(number) ? text : number;
};
const compare = (a, b) => (typeof a === "number" && typeof b === "number"
  ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
const sortable = (table) => {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const direction = NEXT[header.ariaSort || "none"];
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      if (direction !== "none") header.setAttribute("aria-sort", direction);
      const sign = { ascending: 1, descending: -1, none: 0 }[direction];
      body.append(...rows.toSorted((a, b) => sign * compare(value(a, column), value(b, column))));
    });
  });
};

// A click on a figure shows it larger; another one, or Escape, closes it.
const zoom = (link) => link.addEventListener("click", (event) => {
  event.preventDefault();
  const large = document.createElement("dialog");
  large.className = "zoom";
  large.append(link.querySelector("img").cloneNode());
  large.addEventListener("click", () => large.close());
  large.addEventListener("keydown", ({ key }) => { if (key === "Escape") large.close(); });
  large.addEventListener("close", () => { large.remove(); link.focus(); });
  document.body.append(large);
  large.showModal();
});

addEventListener("DOMContentLoaded", () => {
  const state = new URLSearchParams(location.search);
  for (const table of document.querySelectorAll("table.claims")) filter(table, state);
  document.querySelectorAll("table.results").forEach(sortable);
  for (const link of document.querySelectorAll("a[href$='.svg']:has(img)")) zoom(link);
  // What the theme leaves out, for screen readers and keyboards.
  const all = (selector, name, text) => document.querySelectorAll(selector)
    .forEach((element) => element.setAttribute(name, text));
  all("aside.sidebar-drawer", "aria-label", "Pages");
  all("aside.toc-drawer", "aria-label", "Contents of this page");
  all("p.caption[role=heading]", "aria-level", "2");
  all(".table-wrapper", "tabindex", "0");
});
