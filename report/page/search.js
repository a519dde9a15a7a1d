// A search: every ranked plan by memory and step time, the Pareto line, and why the others lose.
"use strict";

function overridesText(plan) {
  return Object.entries(plan.overrides).map(([key, value]) => key + "=" + (Array.isArray(value) ? JSON.stringify(value) : value)).join(" ");
}

function searchHero(data) {
  const search = data.search, best = search.plans[0];
  const hero = element("div", {class: "hero " + (best ? "good" : "bad")}, element("p", {class: "sentence"},
    element("span", {class: "badge"}, best ? "FOUND" : "NOTHING FITS"),
    search.fits.toLocaleString("en") + " of " + search.legal.toLocaleString("en") + " legal plans fit, of " + search.enumerated.toLocaleString("en") + " looked at" +
    (search.complete ? "." : "; the time limit ended the search before the space did.")));
  if (!best) return hero;
  hero.append(element("p", {class: "next"}, "Fastest: ", element("code", {}, overridesText(best))));
  hero.append(element("div", {class: "tiles"}, tile(secondsText(best.step_seconds), "a step"), tile(bytesText(best.memory_bytes), "on the fullest device"),
    tile(compactText(best.tokens_per_second_per_device), "tokens/s per device"), tile(percentText(best.mfu), "model FLOPs utilisation"),
    tile(compactText(search.plans_per_second), "plans a second", "searched in " + secondsText(search.seconds))));
  if (search.bound_by) hero.append(element("p", {class: "next"}, "Its step is bound by: " + search.bound_by));
  return hero;
}

function searchScatter(data) {
  const search = data.search;
  if (!search.plans.length) return null;
  const chosen = element("p", {class: "caption"}, "Click on a plan to see its keys.");
  const unit = byteUnit(Math.max(...[...search.plans, ...search.pareto].map(plan => plan.memory_bytes)));
  const time = timeUnit(search.plans[0].step_seconds);
  const point = plan => ({x: plan.memory_bytes / unit.size, y: plan.step_seconds / time.size, plan});
  const pareto = [...search.pareto].sort((a, b) => a.memory_bytes - b.memory_bytes).map(point);
  const datasets = [
    {label: "the fastest", data: [point(search.plans[0])], pointStyle: "rectRot", radius: 8, hoverRadius: 10, backgroundColor: COLOURS.limit, borderColor: "#ffffff"},
    {label: "Pareto line: nothing is both faster and smaller", type: "line", stepped: "before", data: pareto, borderColor: COLOURS.measured, backgroundColor: COLOURS.measured,
      borderWidth: 1.8, pointRadius: 4},
    {label: "plans that fit, the fastest " + search.plans.length, data: search.plans.map(point), backgroundColor: COLOURS.predicted + "99", borderColor: COLOURS.predicted, radius: 4},
  ];
  const slowest = Math.max(...[...search.plans, ...search.pareto].map(plan => plan.step_seconds)), best = search.plans[0].step_seconds;
  const far = slowest > 3 * best;  // the smallest plans can be a hundred times slower: begin with the interesting corner
  const chart = drawChart("plans by memory and step time", 420, "scatter", {datasets}, {
    zoom: "xy", view: far ? {y: [best * 0.97 / time.size, best * 1.8 / time.size]} : undefined,
    scales: {x: axis("memory of the fullest device, " + unit.name, {type: "linear"}), y: axis("step time, " + time.name, {type: "linear"})},
    tooltip: {callbacks: {label: item => ["rank " + item.raw.plan.rank + ": " + secondsText(item.raw.plan.step_seconds) + ", " + bytesText(item.raw.plan.memory_bytes),
      ...differingKeys(search, item.raw.plan)]}},
  });
  chart.addEventListener("click", event => {
    const hit = chart.chart.getElementsAtEventForMode(event, "nearest", {intersect: true}, true)[0];
    if (!hit) return;
    const plan = chart.chart.data.datasets[hit.datasetIndex].data[hit.index].plan;
    chosen.replaceChildren("Rank " + plan.rank + ": ", element("code", {}, overridesText(plan)));
  });
  return section("Time against memory", "Lower is faster, further left is smaller." + (far ? " Slower plans lie above; the button \u201call\u201d shows them." : ""), chart, chosen);
}

function searchKeys(search) {
  const plans = [...search.plans, ...search.pareto];
  const keys = [...new Set(plans.flatMap(plan => Object.keys(plan.overrides)))];
  return keys.filter(key => new Set(plans.map(plan => String(plan.overrides[key]))).size > 1);
}

function differingKeys(search, plan) {
  return searchKeys(search).map(key => key + " = " + plan.overrides[key]);
}

function searchTable(data) {
  const search = data.search, number = value => typeof value === "number" ? value : String(value ?? "");
  const columns = [{name: "rank", text: plan => plan.rank, value: plan => plan.rank},
    {name: "step", text: plan => secondsText(plan.step_seconds), value: plan => plan.step_seconds},
    {name: "memory", text: plan => bytesText(plan.memory_bytes), value: plan => plan.memory_bytes},
    {name: "tokens/s", text: plan => compactText(plan.tokens_per_second_per_device), value: plan => plan.tokens_per_second_per_device},
    {name: "MFU", text: plan => percentText(plan.mfu), value: plan => plan.mfu},
    {name: "fits", text: plan => percentText(plan.fit_probability), value: plan => plan.fit_probability},
    ...searchKeys(search).map(key => ({name: key.split(".").pop(), text: plan => plan.overrides[key] ?? "", value: plan => number(plan.overrides[key])}))];
  return section("The plans", "Click on a heading to sort.", element("div", {class: "tall"}, sortableTable(columns, search.plans)));
}

function whyOthersLose(data) {
  const search = data.search, parts = [];
  if (search.knobs && search.knobs.length) {
    const best = search.plans[0];
    parts.push(section("One step aside", "The fastest plan with one knob turned.", sortableTable([
      {name: "change", text: knob => knob.change, left: true},
      {name: "step", text: knob => knob.illegal ? "" : secondsText(knob.step_seconds), value: knob => knob.illegal ? Infinity : knob.step_seconds},
      {name: "against the best", text: knob => knob.illegal ? "" : signedPercent(knob.step_seconds / best.step_seconds - 1), value: knob => knob.illegal ? Infinity : knob.step_seconds},
      {name: "memory", text: knob => knob.illegal ? "" : bytesText(knob.memory_bytes), value: knob => knob.illegal ? Infinity : knob.memory_bytes},
      {name: "verdict", text: knob => knob.illegal ? knob.illegal : knob.fits ? "fits" : "does not fit", left: true, worse: knob => Boolean(knob.illegal) || !knob.fits}], search.knobs)));
  }
  if (search.rejected.length) parts.push(section("Plans that were not ranked", "", sortableTable([
    {name: "reason", text: row => row.reason, left: true}, {name: "plans", text: row => row.count.toLocaleString("en"), value: row => row.count},
    {name: "example", text: row => row.example, left: true}], search.rejected)));
  return parts;
}
