// Sorting, filtering, paging and copying of tables. Without it the page reads the same: what it adds is hidden until it runs.
"use strict";
(() => {
  const PAGE = 200;
  const all = (root, what) => Array.from(root.querySelectorAll(what));
  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // A number sorts as a number, an empty cell last in both directions, everything else as text.
  const collator = new Intl.Collator("en", { numeric: true });
  const keyOf = (text) => (text === "" ? null : Number.isNaN(Number(text)) ? text : Number(text));
  const order = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return collator.compare(a, b);
  };

  // The rows of a table that stand in the page.
  const standing = (body) => {
    const rows = Array.from(body.rows);
    return {
      count: rows.length,
      text: (row, column) => rows[row].cells[column].textContent.trim(),
      key: (row, column) => keyOf(rows[row].cells[column].dataset.sort ?? rows[row].cells[column].textContent.trim()),
      element: (row) => rows[row],
      find: (id) => rows.findIndex((row) => row.id === id),
    };
  };

  // The rows of a table that come as columns of distinct cells, with each row's place in them; an element is made when
  // its row is shown. A cell with markup comes as the page's own template wrote it, with every text in it escaped.
  const columnar = ({ count, columns }) => {
    const anchored = columns.find((column) => column.anchor);
    const at = (column, row) => (column.codes ? column.codes[row] : column.cells.length === 1 ? 0 : row);
    const written = (column, row) => (column.texts ?? column.cells)[at(column, row)].slice(0, column.short);
    const fill = (cell, column, row) => {
      const content = column.cells[at(column, row)];
      if (content === "") cell.append(make("span", { ariaLabel: column.empty }, "–"));
      else if (column.texts) cell.innerHTML = content;
      else if (column.anchor) cell.append(make("a", { href: `#${column.anchor}${content}` }, make("code", {}, written(column, row))));
      else cell.append(column.numeric ? content : make("span", { className: "text" }, content));
    };
    return {
      count,
      text: (row, column) => written(columns[column], row),
      key: (row, column) => keyOf((columns[column].keys ?? columns[column].cells)[at(columns[column], row)]),
      element: (row) => {
        const made = document.createElement("tr");
        if (anchored && anchored.cells[at(anchored, row)]) made.id = anchored.anchor + anchored.cells[at(anchored, row)];
        columns.forEach((column, index) => {
          const cell = index ? make("td", { className: column.numeric ? "n" : "" }) : make("th", { scope: "row" });
          fill(cell, column, row);
          made.append(cell);
        });
        return made;
      },
      find: (id) => (anchored ? Array.from({ length: count }, (_, row) => row).findIndex((row) => {
        return anchored.anchor + anchored.cells[at(anchored, row)] === id;
      }) : -1),
    };
  };

  // A table with what is shown of it: its rows in their order, those that match, and the page of them that stands there.
  const view = (table) => {
    const heads = all(table, "thead th");
    const body = table.querySelector("tbody:not(.pinned)");
    const above = 1 + all(table, "tbody.pinned tr").length;
    const data = document.getElementById(`${table.id}-rows`);
    const rows = data ? columnar(JSON.parse(data.textContent)) : standing(body);
    const tools = document.querySelector(`.tools[data-table="${table.id}"]`);
    const note = document.querySelector(`#${table.id}-window p`);
    const size = data ? PAGE : Infinity;
    const words = []; // each row's texts, once someone filters
    let sorted = Array.from({ length: rows.count }, (_, row) => row);
    let matching = sorted;
    let first = 0;

    const show = (there = false) => {
      const shown = there ? Array.from(body.rows) : matching.slice(first, first + size).map(rows.element);
      if (!there) body.replaceChildren(...shown);
      for (const row of all(table, "tbody tr")) {
        heads.forEach((head, index) => { if (row.cells[index].hidden !== head.hidden) row.cells[index].hidden = head.hidden; });
      }
      if (!data) return;
      table.setAttribute("aria-rowcount", matching.length + above);
      shown.forEach((row, index) => row.setAttribute("aria-rowindex", first + index + above + 1));
      const match = matching.length < rows.count ? ` that match, of ${rows.count} in all` : "";
      const range = `Rows ${first + 1} to ${first + shown.length} of ${matching.length}${match}`;
      note.textContent = `${shown.length ? range : `None of ${rows.count} rows matches`}${note.dataset.rest}`;
      all(note.parentElement, "button").forEach((button) => {
        const to = first + Number(button.value);
        button.setAttribute("aria-disabled", to < 0 || to >= matching.length);
      });
    };
    const filter = () => {
      const wanted = (tools?.querySelector("input[type=search]").value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
      const text = (row) => (words[row] ??= heads.map((_, column) => rows.text(row, column)).join(" ").toLowerCase());
      matching = wanted.length ? sorted.filter((row) => wanted.every((word) => text(row).includes(word))) : sorted;
      first = 0;
      if (tools) tools.querySelector("output").textContent = `${matching.length} of ${rows.count} trials`;
    };
    const sort = (column, down) => {
      heads.forEach((head) => head.setAttribute("aria-sort", "none"));
      heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
      const keys = sorted.map((row) => rows.key(row, column));
      const places = keys.map((_, place) => place);
      places.sort((a, b) => {
        const [one, other] = [keys[a], keys[b]];
        if (one === null || other === null) return (one === null) - (other === null);
        return down ? order(other, one) : order(one, other);
      });
      sorted = places.map((place) => sorted[place]);
      filter();
    };

    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        sort(column, head.getAttribute("aria-sort") === "ascending");
        show();
      });
    });
    if (tools) {
      const differ = tools.querySelector("input[type=checkbox]");
      const differs = (column) => new Set(sorted.map((row) => rows.text(row, column))).size > 1;
      tools.querySelector("input[type=search]").addEventListener("input", () => { filter(); show(); });
      differ.addEventListener("change", () => {
        heads.forEach((head, column) => { head.hidden = differ.checked && !differs(column); });
        show();
      });
      tools.hidden = false;
      filter();
    }
    if (data) {
      for (const [name, step] of [["Next", PAGE], ["Previous", -PAGE]]) {
        const button = make("button", { type: "button", className: "copy", value: step }, `${name} ${PAGE} rows`);
        button.addEventListener("click", () => {
          if (button.getAttribute("aria-disabled") === "true") return;
          first += step;
          show();
          table.closest(".scroll").scrollTop = 0;
        });
        note.parentElement.prepend(button);
      }
      show(true); // the first page stands there already
    }
    // Bring a row into the page, wherever it is.
    return (id) => {
      const row = rows.find(id);
      if (row < 0) return;
      if (!matching.includes(row)) {
        tools.querySelector("input[type=search]").value = "";
        filter();
      }
      first = data ? Math.floor(matching.indexOf(row) / PAGE) * PAGE : 0;
      show();
    };
  };
  const views = all(document, "table.sortable").map(view);

  // A link to an arm or a trial leads to its row, in whatever page of a table and behind whatever line it is.
  const follow = () => {
    const id = location.hash.slice(1);
    all(document, "tr.found").forEach((row) => row.classList.remove("found"));
    if (!/^(arm|trial)-/.test(id)) return;
    views.forEach((bring) => bring(id));
    const row = document.getElementById(id);
    if (!row) return;
    for (let at = row.parentElement; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    row.classList.add("found");
    row.tabIndex = -1;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "center" });
  };
  addEventListener("hashchange", follow);
  follow();

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

  // What is folded away is printed too; where style alone can do it, this changes nothing.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all(document, "details:not([open])");
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
  });
})();
