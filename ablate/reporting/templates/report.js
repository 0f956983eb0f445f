// Sorting, filtering and copying of tables. Without it the page reads the same: what it adds is hidden until it runs.
"use strict";
(() => {
  const all = (root, what) => Array.from(root.querySelectorAll(what));

  // A number sorts as a number, an empty cell last in both directions, everything else as text.
  const valueOf = (row, index) => {
    const cell = row.cells[index];
    const given = cell.dataset.sort ?? cell.textContent.trim();
    if (given === "") return null;
    const number = Number(given);
    return Number.isNaN(number) ? given : number;
  };
  const order = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b, "en", { numeric: true });
  };

  for (const table of all(document, "table.sortable")) {
    const heads = all(table, "thead th");
    heads.forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        for (const body of all(table, "tbody:not(.pinned)")) {
          const rows = Array.from(body.rows).map((row, place) => ({ row, place, value: valueOf(row, index) }));
          rows.sort((a, b) => {
            if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.place - b.place;
            return (down ? order(b.value, a.value) : order(a.value, b.value)) || a.place - b.place;
          });
          body.append(...rows.map((entry) => entry.row));
        }
      });
    });
  }

  for (const tools of all(document, ".tools[data-table]")) {
    const table = document.getElementById(tools.dataset.table);
    const search = tools.querySelector("input[type=search]");
    const differ = tools.querySelector("input[type=checkbox]");
    const count = tools.querySelector("output");
    const rows = all(table, "tbody tr");
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = `${shown} of ${rows.length} trials`;
    };
    const narrow = () => {
      all(table, "thead th").forEach((head, index) => {
        const hide = differ.checked && new Set(rows.map((row) => row.cells[index].textContent)).size < 2;
        head.hidden = hide;
        for (const row of rows) row.cells[index].hidden = hide;
      });
    };
    search.addEventListener("input", filter);
    differ.addEventListener("change", narrow);
    tools.hidden = false;
    filter();
  }

  for (const tools of all(document, ".tools[data-copy]")) {
    const said = tools.querySelector("output");
    for (const button of all(tools, "button")) {
      button.addEventListener("click", async () => {
        const source = document.getElementById(button.dataset.source);
        try {
          await navigator.clipboard.writeText(source.textContent);
          said.textContent = `${button.dataset.name} copied`;
        } catch {
          // No access to the clipboard: open the text and select it, so that one key copies it.
          source.closest("details").open = true;
          getSelection().selectAllChildren(source);
          said.textContent = `${button.dataset.name} selected: copy it with your keyboard`;
        }
      });
    }
    tools.hidden = false;
  }
})();
