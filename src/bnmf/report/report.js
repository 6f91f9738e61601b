"use strict";

// Tables: headings become buttons that sort, and a field above the table searches it.
for (const box of document.querySelectorAll(".table")) {
  const body = box.querySelector("tbody");
  const heads = [...box.querySelectorAll("thead th")];
  const original = [...body.rows];
  if (original.length > 25) box.dataset.long = "";
  const scroll = box.querySelector(".scroll");
  new ResizeObserver(() => box.toggleAttribute("data-wide", scroll.scrollWidth > scroll.clientWidth + 1)).observe(scroll);

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const numeric = head.classList.contains("num");
      // Numbers begin with the largest, names with A.
      const first = numeric ? "descending" : "ascending";
      const second = numeric ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? second : first;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const key = numeric
        ? (row) => (row.cells[column].dataset.v === "" ? NaN : Number(row.cells[column].dataset.v))
        : (row) => row.cells[column].textContent;
      const compare = numeric
        ? (a, b) => (Number.isNaN(a) || Number.isNaN(b) ? Number.isNaN(a) - Number.isNaN(b) : sign * (a - b))
        : (a, b) => sign * a.localeCompare(b, "en", { numeric: true });
      const keyed = original.map((row) => [key(row), row]);
      keyed.sort((a, b) => compare(a[0], b[0]));
      body.append(...keyed.map((pair) => pair[1]));
    });
  });

  if (!("search" in box.dataset) || original.length < 8) continue;
  const tools = document.createElement("div");
  const field = document.createElement("input");
  const count = document.createElement("span");
  tools.className = "tools";
  field.type = "search";
  field.placeholder = "Search";
  field.setAttribute("aria-label", "Search: " + box.querySelector(".caption").textContent);
  count.setAttribute("aria-live", "polite");
  count.textContent = original.length.toLocaleString("en") + " rows";
  tools.append(field, count);
  scroll.before(tools);
  // Cut names have their whole text in a title.
  const texts = original.map((row) =>
    [row.textContent, ...[...row.querySelectorAll("[title]")].map((cell) => cell.title)].join(" ").toLowerCase());
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    original.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      shown += !row.hidden;
    });
    const all = original.length.toLocaleString("en");
    count.textContent = words.length ? shown.toLocaleString("en") + " of " + all + " rows" : all + " rows";
  });
}

// Heat maps: names and values of the cell under the mouse, or under a cursor that the arrow keys move.
const tip = document.getElementById("tip");
const numbers = {};

function format(value) {
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
}

function describe(data, row, column) {
  const lines = [data.rows[row]];
  if (data.kind === "share") {
    const share = (100 * data.values[row][column]).toPrecision(2);
    lines.push("component " + data.columns[column] + ": " + Number(share) + "% of the " + data.of + "’s predictions");
    return lines;
  }
  lines[0] += " × " + data.columns[column];
  const observed = data.observed[row][column];
  const guess = `${format(data.mean[row][column])} (90% interval ${format(data.low[row][column])} to ${format(data.high[row][column])})`;
  if (observed === null) lines.push("missing, imputed: " + guess);
  else lines.push("observed: " + format(observed), "fitted: " + guess);
  return lines;
}

for (const chart of document.querySelectorAll("[data-heat]")) {
  const [left, top, width, height] = chart.dataset.box.split(" ").map(Number);
  const [rows, columns] = chart.dataset.shape.split(" ").map(Number);
  const cursor = chart.querySelector(".cursor");
  let at = null;

  const load = () => (numbers[chart.dataset.heat] ??= JSON.parse(document.getElementById(chart.dataset.heat).textContent));

  const leave = () => {
    tip.hidden = true;
    cursor.setAttribute("width", 0);
    at = null;
  };

  const show = (row, column) => {
    at = [row, column];
    const cell = [width / columns, height / rows];
    cursor.setAttribute("x", left + column * cell[0]);
    cursor.setAttribute("y", top + row * cell[1]);
    cursor.setAttribute("width", cell[0]);
    cursor.setAttribute("height", cell[1]);
    const [name, ...rest] = describe(load(), row, column);
    const heading = document.createElement("b");
    heading.textContent = name;
    tip.replaceChildren(heading, rest.join("\n"));
    tip.style.whiteSpace = "pre-line";
    tip.hidden = false;
    const box = cursor.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const x = Math.min(Math.max(8, box.right + 12), window.innerWidth - size.width - 8);
    const below = box.bottom + 12;
    tip.style.left = x + "px";
    tip.style.top = (below + size.height > window.innerHeight ? box.top - size.height - 12 : below) + "px";
  };

  const follow = (event) => {
    const box = chart.getBoundingClientRect();
    const scale = chart.viewBox.baseVal.width / box.width;
    const column = Math.floor((((event.clientX - box.left) * scale - left) / width) * columns);
    const row = Math.floor((((event.clientY - box.top) * scale - top) / height) * rows);
    if (row >= 0 && row < rows && column >= 0 && column < columns) show(row, column);
    else leave();
  };
  chart.addEventListener("pointermove", follow);
  chart.addEventListener("pointerdown", follow);
  chart.addEventListener("pointerleave", leave);
  chart.addEventListener("blur", leave);
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Escape") leave();
    if (!step) return;
    event.preventDefault();
    const [row, column] = at ?? [0, 0];
    show(Math.min(Math.max(row + step[0], 0), rows - 1), Math.min(Math.max(column + step[1], 0), columns - 1));
  });
}
