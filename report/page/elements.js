// Building blocks of the page. Text only ever enters as text nodes, so no name can become markup.
"use strict";

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

function section(title, caption, ...children) {
  return element("section", {}, element("h2", {}, title), caption ? element("p", {class: "caption"}, caption) : null, ...children);
}

function tile(value, name, more) {
  return element("div", {class: "tile"}, element("b", {}, value), element("span", {}, name), more ? element("span", {}, more) : null);
}

function legend(entries) {
  return element("div", {class: "legend"}, ...entries.map(([name, colour]) =>
    element("span", {}, element("i", {style: {background: colour}}), name)));
}

function choice(label, names, chosen, onchange) {
  const select = element("select", {"aria-label": label}, ...names.map((name, index) => element("option", {value: index}, name)));
  select.value = chosen;
  select.addEventListener("change", () => onchange(Number(select.value)));
  return element("label", {}, label + " ", select);
}

// columns: {name, text(row), value(row), left, worse(row)}; without `value` a column sorts by its text.
function sortableTable(columns, rows) {
  const body = element("tbody");
  const fill = list => body.replaceChildren(...list.map(row => element("tr", {}, ...columns.map(column => cell(column, row)))));
  const heads = columns.map(column => element("th", {scope: "col", class: column.left ? "left" : ""},
    element("button", {type: "button", title: "sort by " + column.name}, column.name)));
  heads.forEach((head, index) => head.addEventListener("click", () => {
    const ascending = head.getAttribute("aria-sort") === "descending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    fill(sorted(rows, columns[index], ascending));
  }));
  fill(rows);
  return element("div", {class: "scroll"}, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body));
}

function cell(column, row) {
  const classes = [column.left ? "left" : "", column.worse && column.worse(row) ? "worse" : ""].join(" ").trim();
  return element("td", classes ? {class: classes} : {}, column.text(row));
}

function sorted(rows, column, ascending) {
  const key = column.value || column.text;
  const order = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  const result = [...rows].sort((a, b) => order(key(a) ?? -Infinity, key(b) ?? -Infinity));
  return ascending ? result : result.reverse();
}

function folded(title, ...children) {
  return element("details", {}, element("summary", {}, title), ...children);
}
