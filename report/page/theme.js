// Colours, light and dark. Components keep their colour in every chart.
"use strict";

const COLOURS = {
  parameters: "#4477cc", gradients: "#d1556b", optimizer: "#8f6ac9", activations: "#2a9d8f", transient: "#e3a13a",
  communication: "#7c8a9a", allocator_slack: "#b9c2ce", communicators: "#9db2c9", context: "#67748a",
  forward: "#5b8def", backward: "#2fa58a", recompute: "#8ccf6b", states: "#8f6ac9", network: "#e8963c", idle: "#b9c2ce",
  other: "#9098a4", predicted: "#4477cc", simulated: "#2a9d8f", measured: "#e3873a", limit: "#cc3b3b",
};

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  for (const chart of Object.values(Chart.instances)) {
    styleScales(chart.options);
    chart.update("none");
  }
}

function styleScales(options) {
  const ink = cssColour("soft"), grid = cssColour("grid");
  for (const scale of Object.values(options.scales)) {
    scale.ticks = Object.assign(scale.ticks || {}, {color: ink});
    scale.grid = Object.assign(scale.grid || {}, {color: grid, borderColor: grid, tickColor: grid});
    if (scale.title) scale.title.color = ink;
  }
  options.plugins.legend.labels.color = ink;
}

function themeButton() {
  return element("button", {type: "button", onclick: () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark")},
    "light / dark");
}

// Paper is white: print in the light theme, and come back.
function followPrinter() {
  let before = "light";
  window.addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    setTheme("light");
    for (const chart of Object.values(Chart.instances)) chart.resize();
  });
  window.addEventListener("afterprint", () => setTheme(before));
}

// What a time component is: "forward.qkv" is forward work, "tensor.all_gather" network, "bubble" idle.
function kindOf(component) {
  const phase = component.split(".")[0];
  if (["forward", "backward", "recompute"].includes(phase)) return phase;
  if (phase === "optimizer") return "states";
  if (["bubble", "waiting"].includes(phase)) return "idle";
  return component.includes(".") ? "network" : "other";
}

const KIND_NAMES = {forward: "forward", backward: "backward", recompute: "recomputation", states: "optimizer",
  network: "communication that is not hidden", idle: "bubble and waiting", other: "other"};
