// Reads the data that reckon wrote into the page and puts the sections together.
"use strict";

function planSection(data) {
  const rows = [];
  const walk = (value, path) => {
    if (value !== null && typeof value === "object" && !Array.isArray(value)) for (const [key, inner] of Object.entries(value)) walk(inner, path ? path + "." + key : key);
    else rows.push([path, Array.isArray(value) ? JSON.stringify(value) : String(value)]);
  };
  walk(data.profiles[0].plan, "");
  const own = rows.filter(([key]) => !key.startsWith("model.") && !key.startsWith("hardware."));
  const table = list => sortableTable([{name: "key", text: row => row[0], left: true}, {name: "value", text: row => row[1], left: true}], list);
  return section("The plan", data.summary, folded(plural(own.length, "key"), table(own)),
    folded("model and hardware", table(rows.filter(row => !own.includes(row)))));
}

function assumptionSection(data) {
  const list = [...data.profiles[0].assumptions, ...data.profiles[0].warnings.map(text => "Warning: " + text)];
  if (!list.length) return null;
  return section("What the prediction rests on", "", element("ul", {}, ...list.map(text => element("li", {}, text))));
}

function pair(...parts) {
  const there = parts.filter(Boolean);
  return there.length === 2 ? element("div", {class: "pair"}, ...there) : there[0] || null;
}

function stepSections(data) {
  return [
    verdictHero(data),
    memoryByStage(data),
    memoryOverTime(data),
    scheduleTimeline(data),
    stepWaterfall(data),
    pair(blameChart(data, "time", "What the error of the step time consists of", "the measured step"),
      blameChart(data, "memory", "What the error of the peak memory consists of", "the measured peak of its stage")),
    pair(roofline(data), trafficByLink(data)),
    pair(lossCurve(data), stepTimes(data)),
    lossesOfTwo(data),
    comparisonTable(data),
    planSection(data),
    assumptionSection(data),
  ];
}

function fillPage(data) {
  const dark = window.matchMedia && window.matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("tools").append(themeButton());
  const parts = [];
  if (data.search) parts.push(searchHero(data), searchScatter(data), searchTable(data), ...whyOthersLose(data));
  parts.push(...historySections(data), ...differenceSections(data));
  if (data.profiles.length) parts.push(...stepSections(data));
  document.getElementById("page").replaceChildren(...parts.filter(Boolean));
  makeWaitingCharts();
  followPrinter();
  document.documentElement.dataset.charts = Object.keys(Chart.instances).length;  // read by the browser test
}

fillPage(JSON.parse(document.getElementById("data").textContent));
