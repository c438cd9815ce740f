// Without this script all verdicts are shown, and what is folded stays so on paper.
"use strict";

// On paper settings and guarantees are unfolded.
(() => {
  const folded = [...document.querySelectorAll("details.facts:not([open])")];
  const unfold = (open) => () => folded.forEach((entry) => { entry.open = open; });
  window.addEventListener("beforeprint", unfold(true));
  window.addEventListener("afterprint", unfold(false));
})();

// Shows the verdicts of one kind.
(() => {
  const form = document.querySelector("[data-filter]");
  if (!form) return;
  const rows = [...document.querySelectorAll("tr[data-verdict]")];
  const kinds = [...form.elements.verdict].map((radio) => radio.value).slice(1);
  const inSeries = document.querySelector("[data-cells]") !== null;

  // A row of a series stands for many verdicts, unless the page lists each of them.
  function size(row, kind) {
    if (!row.dataset.counts) return 1;
    if (inSeries) return 0;
    const counts = row.dataset.counts.split(" ").map(Number);
    return kind === "all" ? counts.reduce((a, b) => a + b, 0) : counts[kinds.indexOf(kind)];
  }

  function apply() {
    const kind = form.elements.verdict.value;
    let shown = 0;
    for (const row of rows) {
      row.hidden = kind !== "all" && !row.dataset.verdict.split(" ").includes(kind);
      if (!row.hidden) shown += size(row, kind);
    }
    const holders = document.querySelectorAll("[data-cells], [data-claims], table.claims, table.series");
    for (const holder of holders) {
      holder.hidden = !holder.querySelector("tr[data-verdict]:not([hidden])");
    }
    for (const cells of document.querySelectorAll("[data-cells]")) {
      cells.open = kind.startsWith("not_") && !cells.hidden;
    }
    const total = rows.reduce((sum, row) => sum + size(row, "all"), 0);
    const say = (number) => number.toLocaleString("en-GB");
    form.querySelector("[data-status]").textContent = `${say(shown)} of ${say(total)} verdicts shown`;
  }

  // A link to a verdict opens what it is folded into.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target && target.closest("details");
    if (folded && !folded.open) {
      folded.open = true;
      target.scrollIntoView();
    }
  }

  form.hidden = false;
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", reveal);
  apply();
  reveal();
})();
