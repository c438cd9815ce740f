// Without this script all verdicts are shown, and what is folded stays so on paper.
"use strict";

// On paper settings, guarantees and lists of claims are unfolded, unless they are long, and all
// pictures are there.
(() => {
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.facts:not([open], .long)")];
    folded.forEach((entry) => { entry.open = true; });
    [...document.images].forEach((image) => { image.loading = "eager"; });
  });
  window.addEventListener("afterprint", () => {
    folded.forEach((entry) => { entry.open = false; });
  });
})();

// Tells the style how high the bars are that stay on the screen, so that a link ends below them.
const measureBars = () => {
  const height = (name) => {
    const bar = document.querySelector(name);
    return bar && getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0;
  };
  const style = document.documentElement.style;
  style.setProperty("--nav", `${height("nav.site")}px`);
  style.setProperty("--bars", `${height("nav.site") + height("[data-filter]")}px`);
};
addEventListener("resize", measureBars);

// Shows the verdicts of one kind, and among them those in which all words of a search occur. Both
// are part of the address: ?verdict=contradicted&find=banana.
(() => {
  const form = document.querySelector("[data-filter]");
  if (!form) return;
  const { verdict, find } = form.elements;
  const rows = [...document.querySelectorAll("tr[data-verdict]")];
  const kinds = [...verdict].map((radio) => radio.value).slice(1);
  const inSeries = document.querySelector("[data-cells]") !== null;
  const texts = new Map();

  // The printed numbers that a row of a series stands for, where the page lists each of them.
  function cellsOf(row) {
    const link = row.dataset.counts && inSeries && row.querySelector("a[href^='#']");
    return link ? document.getElementById(link.hash.slice(1)) : null;
  }

  function size(row, kind) {
    if (!row.dataset.counts) return 1;
    if (inSeries) return 0;
    const counts = row.dataset.counts.split(" ").map(Number);
    return kind === "all" ? counts.reduce((a, b) => a + b, 0) : counts[kinds.indexOf(kind)];
  }

  // What the summary of a series says holds of each of its numbers.
  function text(row) {
    const cells = row.closest("[data-cells]");
    const shared = cells ? cells.querySelector("summary").textContent : "";
    return `${shared} ${row.textContent}`.toLowerCase();
  }

  function fits(row, kind, words) {
    if (kind !== "all" && !row.dataset.verdict.split(" ").includes(kind)) return false;
    if (words.length && !texts.has(row)) texts.set(row, text(row));
    return words.every((word) => texts.get(row).includes(word));
  }

  const hasRows = (part) => part.querySelector("tr[data-verdict]:not([hidden])") !== null;

  function apply() {
    const kind = verdict.value;
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !fits(row, kind, words);
    let shown = 0;
    for (const row of rows) {
      const cells = cellsOf(row);
      if (cells) row.hidden = !hasRows(cells);
      if (!row.hidden) shown += size(row, kind);
    }
    const holders = document.querySelectorAll("[data-cells], [data-claims], table.claims, table.series");
    for (const holder of holders) holder.hidden = !hasRows(holder);
    for (const cells of document.querySelectorAll("[data-cells]")) {
      cells.open = (kind !== "all" && kind !== "reproduced" || words.length > 0) && !cells.hidden;
    }
    const total = rows.reduce((sum, row) => sum + size(row, "all"), 0);
    const say = (number) => number.toLocaleString("en-GB");
    const chosen = kind === "all" ? [] : [kind.replaceAll("_", " ")];
    const what = chosen.concat(words.map((word) => `“${word}”`)).join(", ");
    form.classList.toggle("active", what !== "");
    form.querySelector("[data-status]").textContent =
      `${say(shown)} of ${say(total)} verdicts shown${what && `: ${what}`}`;
  }

  function read() {
    const state = new URLSearchParams(location.search);
    const kind = state.get("verdict");
    verdict.value = kinds.includes(kind) ? kind : "all";
    find.value = state.get("find") || "";
  }

  function write() {
    const state = new URLSearchParams();
    if (verdict.value !== "all") state.set("verdict", verdict.value);
    if (find.value.trim()) state.set("find", find.value.trim());
    const query = state.toString();
    try {
      history.replaceState(null, "", location.pathname + (query && `?${query}`) + location.hash);
    } catch (refused) {
      // A browser may keep the address of a file as it is; the filter works all the same.
    }
  }

  // A link to a verdict shows it, whatever the filter, and opens what it is folded into.
  function reveal(event) {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const folded = target.closest("details");
    const unseen = target.closest("[hidden]") !== null;
    if (unseen) {
      verdict.value = "all";
      find.value = "";
      apply();
      write();
    }
    if (folded) folded.open = true;
    if (!event || unseen || folded) target.scrollIntoView();
  }

  form.hidden = false;
  form.addEventListener("input", () => { apply(); write(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", reveal);
  read();
  apply();
  measureBars();
  reveal();
})();
