#!/usr/bin/env python3
"""Predicted against measured as a picture (SVG), one panel a source: step times, then memory.

    reckon score runs.csv --rows --json > rows.json && bench/score_plot.py rows.json > docs/score.svg

Both axes are logarithmic and share one scale in a panel; on the line prediction and measurement agree, in the band they
differ by 20 % at most. Sources with fewer than 10 rows are left out; of sources that do not say whether they recompute,
the rows predicted without recomputation are shown.
"""
import json, math, statistics, sys

PANEL, GAP, LEFT, TOP = 230, 66, 56, 40
COLUMNS, FEWEST = 4, 10
KINDS = (("step time", "seconds", "step_seconds", "step_time", 1.0), ("memory", "GiB", "memory_bytes", "memory", 2.0**30))

STYLE = """
  .ink { fill: #1c2733 } .soft { fill: #5b6b7a } .frame { fill: none; stroke: #b8c4cf } .tick { stroke: #e3e9ee }
  .band { fill: #e6eef6 } .even { stroke: #5b6b7a; stroke-dasharray: 4 3 } .dot { fill: #1464a5; fill-opacity: .45 }
  text { font: 12px system-ui, sans-serif } .head { font-weight: 600; font-size: 13px } .small { font-size: 11px }
  .page { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    .ink { fill: #e6edf3 } .soft { fill: #9aa9b7 } .frame { stroke: #43515e } .tick { stroke: #27323c }
    .band { fill: #1d2b39 } .even { stroke: #9aa9b7 } .dot { fill: #6cb2ee } .page { fill: #11181f }
  }"""


def panels(rows):
    """(title, unit, points, mean absolute error) of every source with enough rows."""
    for kind, unit, field, error, scale in KINDS:
        by_source = {}
        for row in rows:
            if row["status"] != "scored" or row["error"][error] is None or row["assume"].get("recompute", "none") != "none":
                continue
            by_source.setdefault(row["group"], []).append(row)
        for source, group in sorted(by_source.items(), key=lambda item: -len(item[1])):
            if len(group) < FEWEST:
                continue
            points = [(row["measured"][field] / scale, row["predicted"][field] / scale) for row in group]
            errors = [abs(row["error"][error]) for row in group]
            yield f"{source}: {kind}", unit, points, statistics.mean(errors), statistics.median(errors)


def ticks(low, high):
    """Powers of ten, and the more digits between them the fewer of them fit."""
    steps = (1,) if high - low > 3 else (1, 2, 5) if high - low > 0.8 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    values = [digit * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for digit in steps]
    return [value for value in values if low <= math.log10(value) <= high]


def panel(index, title, unit, points, mean, median):
    logs = [math.log10(value) for point in points for value in point]
    margin = 0.06 * max(0.3, max(logs) - min(logs))
    low, high = min(logs) - margin, max(logs) + margin
    place = lambda value: PANEL * (math.log10(value) - low) / (high - low)
    x0, y0 = LEFT + index % COLUMNS * (PANEL + GAP), TOP + index // COLUMNS * (PANEL + GAP + 26)
    band = PANEL * math.log10(1.2) / (high - low)
    out = [f'<g transform="translate({x0} {y0})">',
           f'<text class="ink head" x="0" y="-20">{title}</text>',
           f'<text class="soft small" x="0" y="-6">{len(points)} rows; error mean {100 * mean:.1f} %, median {100 * median:.1f} %</text>',
           f'<clipPath id="p{index}"><rect width="{PANEL}" height="{PANEL}"/></clipPath><g clip-path="url(#p{index})">',
           f'<path class="band" d="M0 {PANEL - band:.1f} L{PANEL} {-band:.1f} V{band:.1f} L0 {PANEL + band:.1f} Z"/>']
    for value in ticks(low, high):
        at = place(value)
        out.append(f'<path class="tick" d="M{at:.1f} 0 V{PANEL} M0 {PANEL - at:.1f} H{PANEL}"/>')
    out.append(f'<path class="even" d="M0 {PANEL} L{PANEL} 0"/>')
    size = 2.6 if len(points) < 400 else 1.7
    out += [f'<circle class="dot" cx="{place(x):.1f}" cy="{PANEL - place(y):.1f}" r="{size}"/>' for x, y in points]
    out.append(f'</g><rect class="frame" width="{PANEL}" height="{PANEL}"/>')
    for value in ticks(low, high):
        text = f"{value:g}"
        out.append(f'<text class="soft small" x="{place(value):.1f}" y="{PANEL + 14}" text-anchor="middle">{text}</text>')
        out.append(f'<text class="soft small" x="-5" y="{PANEL - place(value) + 4:.1f}" text-anchor="end">{text}</text>')
    out.append(f'<text class="soft small" x="{PANEL / 2}" y="{PANEL + 29}" text-anchor="middle">measured, {unit}</text>')
    out.append(f'<text class="soft small" transform="translate(-40 {PANEL / 2}) rotate(-90)" text-anchor="middle">predicted, {unit}</text></g>')
    return out


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = list(panels(json.load(file)["rows"]))
    lines = -(-len(found) // COLUMNS)
    width, height = LEFT + COLUMNS * (PANEL + GAP) - GAP + 20, TOP + lines * (PANEL + GAP + 26) - 26
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">')
    print(f"<style>{STYLE}\n</style>")
    print(f'<rect class="page" width="{width}" height="{height}"/>')
    for index, one in enumerate(found):
        print("\n".join(panel(index, *one)))
    print("</svg>")


if __name__ == "__main__":
    main()
