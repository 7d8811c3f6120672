"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const rows = [...document.querySelectorAll("tr.call")];
  const batches = [...document.querySelectorAll("tbody.batch")];
  const form = document.getElementById("filters");
  const panel = document.getElementById("panel");
  const shown = document.getElementById("shown");
  const texts = rows.map((row, at) => facts[at].map(([, text]) => text).join("\n").toLowerCase());
  let chosen = null;

  function filter() {
    const tool = form.tool.value, status = form.status.value, text = form.text.value.trim().toLowerCase();
    let count = 0;
    rows.forEach((row, at) => {
      const late = status === "late" && row.dataset.late === "1";
      row.hidden = !((!tool || row.dataset.tool === tool) && (!status || late || row.dataset.status === status)
        && (!text || texts[at].includes(text)));
      count += !row.hidden;
    });
    const all = !tool && !status && !text;
    for (const batch of batches) {
      batch.hidden = !all && !batch.querySelector("tr.call:not([hidden])");
      for (const left of batch.querySelectorAll("tr.left")) left.hidden = !all;
    }
    shown.textContent = all ? "" : `${count} of ${rows.length} calls`;
    if (chosen && chosen.hidden) close();
  }

  function open(row) {
    if (chosen) mark(chosen, false);
    chosen = row;
    mark(row, true);
    const list = panel.querySelector("dl");
    list.replaceChildren();
    for (const [label, text] of facts[rows.indexOf(row)]) {
      const term = document.createElement("dt"), value = document.createElement("dd"), own = document.createElement("bdi");
      term.textContent = label;
      own.textContent = text;
      value.append(own);
      list.append(term, value);
    }
    panel.hidden = false;
    panel.scrollTop = 0;
  }

  function mark(row, on) {
    row.classList.toggle("chosen", on);
    row.querySelector("button").setAttribute("aria-expanded", String(on));
  }

  function close() {
    if (!chosen) return;
    const row = chosen;
    chosen = null;
    mark(row, false);
    panel.hidden = true;
    if (!row.hidden) row.querySelector("button").focus();
  }

  function step(row, by) {
    const seen = rows.filter((one) => !one.hidden);
    const next = seen[seen.indexOf(row) + by];
    if (!next) return;
    next.querySelector("button").focus();
    if (chosen) open(next);
  }

  for (const row of rows) {
    row.addEventListener("click", () => (chosen === row ? close() : open(row)));
    row.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) { event.preventDefault(); step(row, by); }
    });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  panel.querySelector("button").addEventListener("click", close);
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
})();
