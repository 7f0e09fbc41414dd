// SPDX-License-Identifier: GPL-2.0-or-later
// Tables that are sorted by a click or a key on a heading, and filtered by text and by a word.
"use strict";
(() => {
  const made = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const key = (cell) => {
    const sort = cell.dataset.sort;
    return sort === undefined ? cell.textContent.trim() : Number(sort);
  };
  const compare = (one, other) => {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      const button = made("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        // Figures are looked at from the largest on, names from A.
        const first = head.classList.contains("number") ? "descending" : "ascending";
        const second = first === "ascending" ? "descending" : "ascending";
        const now = was === first ? second : first;
        for (const one of heads) one.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", now);
        const sign = now === "ascending" ? 1 : -1;
        const keyed = [...body.rows].map((row) => [key(row.cells[at]), row]);
        keyed.sort((one, other) => sign * compare(one[0], other[0]));
        body.append(...keyed.map(([, row]) => row));
      });
    });
  };

  const filtered = (table) => {
    const rows = [...table.tBodies[0].rows];
    const column = Number(table.dataset.filtered);
    const text = made("input", { type: "search", autocomplete: "off" });
    text.setAttribute("aria-controls", table.id);
    const word = made("select", {}, made("option", { value: "", textContent: "all" }));
    word.setAttribute("aria-controls", table.id);
    for (const one of [text, word]) one.setAttribute("aria-describedby", table.caption.id);
    const count = made("span", { className: "quiet" });
    count.setAttribute("role", "status");
    const wordOf = (row) => (column < 0 ? "" : row.cells[column].textContent.trim());
    const words = [...new Set(rows.map(wordOf))].filter(Boolean);
    word.append(...words.map((one) => made("option", { value: one, textContent: one })));
    const apply = () => {
      const wanted = text.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        const fits =
          row.cells[0].textContent.toLowerCase().includes(wanted) &&
          (!word.value || wordOf(row) === word.value);
        row.hidden = !fits;
        shown += fits;
      }
      count.textContent = `${shown} of ${rows.length} shown`;
    };
    text.addEventListener("input", apply);
    word.addEventListener("change", apply);
    const head = table.tHead.rows[0];
    const tools = made("div", { className: "tools" });
    tools.append(made("label", {}, `Find ${head.cells[0].textContent}`, text));
    if (words.length > 1) tools.append(made("label", {}, head.cells[column].textContent, word));
    tools.append(count);
    table.closest(".tablebox").before(tools);
    apply();
  };

  for (const table of document.querySelectorAll("table")) {
    if (table.dataset.filtered !== undefined) filtered(table);
    if (table.tBodies[0].rows.length > 1) sortable(table);
  }
})();
