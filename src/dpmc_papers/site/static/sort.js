// Without this script rows stand in the order of the files.
"use strict";

// Puts a button into each header of a longer table, which sorts its rows by that column: upward,
// downward, and back to the order of the file.
(() => {
  const LONG = 8;
  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
  const NUMBER = /^([-+−]?(?:∞|inf|[\d,]*\.?\d+(?:e[-+]?\d+)?))(?:$| ±| \[| %)/i;

  function key(row, column) {
    const text = row.cells[column].textContent.trim();
    const found = NUMBER.exec(text);
    if (!found) return text === "–" ? "" : text;
    const plain = found[1].replace(/,/g, "").replace("−", "-");
    return Number(plain.replace(/∞|inf/i, "Infinity"));
  }

  // Numbers come before words; what is empty comes last, whatever the direction.
  function compare(a, b, sign) {
    if (a === "" || b === "") return (a === "") - (b === "");
    if (typeof a !== typeof b) return sign * (typeof a === "number" ? -1 : 1);
    if (typeof a === "number") return a === b ? 0 : sign * (a < b ? -1 : 1);
    return sign * a.localeCompare(b, "en", { numeric: true });
  }

  function sort(body, original, column, direction) {
    const sign = direction === "descending" ? -1 : 1;
    const keyed = original.map((row) => [row, direction === "none" ? 0 : key(row, column)]);
    body.append(...keyed.sort((a, b) => compare(a[1], b[1], sign)).map(([row]) => row));
  }

  for (const table of document.querySelectorAll("table.grid, table.claims, table.series")) {
    const body = table.tBodies[0];
    if (body.rows.length <= LONG) continue;
    const original = [...body.rows];
    const headers = [...table.tHead.rows[0].cells];
    for (const [column, header] of headers.entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => {
        const direction = NEXT[header.getAttribute("aria-sort") || "none"];
        headers.forEach((other) => other.removeAttribute("aria-sort"));
        if (direction !== "none") header.setAttribute("aria-sort", direction);
        sort(body, original, column, direction);
      });
    }
  }
})();
