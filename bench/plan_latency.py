#!/usr/bin/env python3
"""How long `reckon plan` takes for every plan in configs/plans, the slowest first.

    bench/plan_latency.py [--reckon build/core/bin/reckon] [--runs 7]

Whole processes, start to end: the median wall time and the least processor time of the runs. On a busy machine only the
latter says something.
"""
import argparse, os, pathlib, statistics, subprocess, time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def run(command):
    """Wall and processor seconds of one process."""
    before, start = os.times(), time.perf_counter()
    result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wall, after = time.perf_counter() - start, os.times()
    if result.returncode not in (0, 4):  # 4: predicted, but does not fit
        raise SystemExit(f"{' '.join(command)} ended with {result.returncode}: {result.stderr}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reckon", default=str(ROOT / "build/core/bin/reckon"))
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    rows = []
    for plan in sorted((ROOT / "configs/plans").glob("*.yaml")):
        runs = [run([options.reckon, "plan", str(plan)]) for _ in range(options.runs)]
        rows.append((statistics.median(wall for wall, _ in runs), min(used for _, used in runs), plan.stem))
    print(f"{'plan':32}{'median wall':>14}{'least processor':>18}")
    for wall, used, name in sorted(rows, key=lambda row: -row[1]):
        print(f"{name:32}{1000 * wall:11.1f} ms{1000 * used:15.1f} ms")


if __name__ == "__main__":
    main()
