// Chart.js with the defaults, the limit line and the zoom that all charts of the page share.
"use strict";

Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.font.family = "system-ui, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
Chart.defaults.devicePixelRatio = Math.max(2, window.devicePixelRatio || 1);

function axis(title, more = {}) {
  return Object.assign({title: {display: Boolean(title), text: title}}, more);
}

// options: {scales, tooltip, legend, indexAxis, plugins: [...]}
function drawChart(label, height, type, data, options) {
  const canvas = element("canvas", {role: "img", "aria-label": label});
  const box = element("div", {class: "chart", style: {height: height + "px"}}, canvas);
  const settings = {
    indexAxis: options.indexAxis || "x",
    scales: options.scales,
    interaction: options.interaction || {mode: "nearest", intersect: true},
    plugins: {legend: options.legend || {display: data.datasets.length > 1, position: "bottom", labels: {boxWidth: 11, boxHeight: 11}},
      tooltip: options.tooltip || {}},
  };
  settings.plugins.legend.labels = settings.plugins.legend.labels || {};
  styleScales(settings);
  whenAttached(box, () => {
    box.chart = new Chart(canvas, {type, data, options: settings, plugins: options.plugins || []});
    if (options.zoom) makeZoomable(box.chart, options.zoom, options.view);
  });
  return box;
}

// Chart.js measures its parent, so charts are made once the page stands.
const waitingCharts = [];
function whenAttached(box, make) {
  if (box.isConnected) make();
  else waitingCharts.push(make);
}
function makeWaitingCharts() {
  for (const make of waitingCharts.splice(0)) make();
}

// A dashed line at `value` of the axis `scaleName`, where the axis reaches that far.
function limitLine(scaleName, value, text) {
  return {id: "limit", afterDatasetsDraw(chart) {
    const scale = chart.scales[scaleName], area = chart.chartArea, context = chart.ctx;
    if (!(value >= scale.min && value <= scale.max)) return;
    const at = scale.getPixelForValue(value), upright = scale.isHorizontal();
    context.save();
    context.strokeStyle = context.fillStyle = COLOURS.limit;
    context.setLineDash([5, 4]);
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(upright ? at : area.left, upright ? area.top : at);
    context.lineTo(upright ? at : area.right, upright ? area.bottom : at);
    context.stroke();
    context.font = "600 11px " + Chart.defaults.font.family;
    const room = upright && area.right - at > context.measureText(text).width + 8;  // beside the line, off the bars
    context.textAlign = room ? "left" : "right";
    context.fillText(text, upright ? at + (room ? 5 : -5) : area.right - 4, upright ? area.top + 11 : at - 5);
    context.restore();
  }};
}

// Drag to zoom into a range, double click or the button to see everything again. `axes` is "x" or "xy"; `view` is what
// is shown at first, e.g. {x: [0, 1]}.
function makeZoomable(chart, axes, view) {
  const canvas = chart.canvas, box = canvas.parentElement;
  const original = {};
  for (const name of axes) original[name] = [chart.scales[name].min, chart.scales[name].max];
  const show = ranges => {
    for (const name of axes) [chart.options.scales[name].min, chart.options.scales[name].max] = ranges[name];
    chart.update("none");
  };
  const scaled = factor => Object.fromEntries([...axes].map(name => {
    const {min, max} = chart.scales[name], middle = (min + max) / 2, half = (max - min) / 2 * factor;
    return [name, [Math.max(original[name][0], middle - half), Math.min(original[name][1], middle + half)]];
  }));
  box.before(element("div", {class: "tools"},
    element("button", {type: "button", "aria-label": "zoom in", onclick: () => show(scaled(0.5))}, "+"),
    element("button", {type: "button", "aria-label": "zoom out", onclick: () => show(scaled(2))}, "\u2212"),
    element("button", {type: "button", onclick: () => show(original)}, "all"),
    "drag over the picture to zoom in"));
  const frame = element("div", {style: {position: "absolute", display: "none", pointerEvents: "none",
    background: "rgba(80, 130, 230, 0.18)", border: "1px solid rgba(80, 130, 230, 0.7)"}});
  box.append(frame);
  if (view) show({...original, ...view});
  let start = null;
  const corners = event => {
    const area = chart.chartArea, rectangle = canvas.getBoundingClientRect();
    const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
    const end = {x: clamp(event.clientX - rectangle.left, area.left, area.right), y: clamp(event.clientY - rectangle.top, area.top, area.bottom)};
    if (!start) return {from: end, to: end};
    const whole = axes === "xy";
    return {from: {x: Math.min(start.x, end.x), y: whole ? Math.min(start.y, end.y) : area.top},
      to: {x: Math.max(start.x, end.x), y: whole ? Math.max(start.y, end.y) : area.bottom}};
  };
  canvas.addEventListener("pointerdown", event => {
    if (event.pointerType === "touch") return;  // a finger scrolls the page
    start = corners(event).from;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    if (!start) return;
    const {from, to} = corners(event);
    Object.assign(frame.style, {display: "block", left: from.x + "px", top: from.y + "px", width: to.x - from.x + "px", height: to.y - from.y + "px"});
  });
  canvas.addEventListener("pointerup", event => {
    if (!start) return;
    const {from, to} = corners(event);
    start = null;
    frame.style.display = "none";
    if (to.x - from.x < 6) return;
    const range = name => ["x", "y"].includes(name) && [chart.scales[name].getValueForPixel(name === "x" ? from.x : to.y),
      chart.scales[name].getValueForPixel(name === "x" ? to.x : from.y)];
    show(Object.fromEntries([...axes].map(name => [name, range(name)])));
  });
  canvas.addEventListener("dblclick", () => show(original));
}
