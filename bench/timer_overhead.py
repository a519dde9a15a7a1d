#!/usr/bin/env python3
"""What timing every op costs: the same run with and without it, in turns.

    bench/timer_overhead.py [--runs 7] [PLAN] [key=value ...]

Compares the ranks' fastest steps and the medians of all steps. One thread a rank; `--backend threads`.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def steps(a, plan, *more):
    with tempfile.TemporaryDirectory() as folder:
        command = [a.programs / "reckon-rank", "train", "--plan", plan, "--out", folder, "--backend", "threads", *more]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        if done.returncode:
            sys.exit(done.stderr)
        return [json.loads(line)["seconds"] for line in pathlib.Path(folder, "metrics.jsonl").read_text().splitlines()][2:]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("plan", nargs="?", default=ROOT / "examples/tiny.yaml")
    p.add_argument("overrides", nargs="*", default=[])
    p.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/cpu/bin")
    p.add_argument("--runs", type=int, default=7)
    p.add_argument("--steps", type=int, default=40)
    a = p.parse_args()
    timed, untimed = [], []
    for _ in range(a.runs):
        timed.append(steps(a, a.plan, "--steps", str(a.steps), *a.overrides))
        untimed.append(steps(a, a.plan, "--steps", str(a.steps), "--untimed", *a.overrides))
    def compare(name, figure):
        with_timing, without = figure(timed), figure(untimed)
        print(f"{name}: {with_timing * 1e3:.3f} ms with timing, {without * 1e3:.3f} ms without: {with_timing / without - 1:+.2%}")
    compare("median of all steps", lambda runs: statistics.median(s for run in runs for s in run))
    compare("fastest step", lambda runs: min(s for run in runs for s in run))
    compare("median of the runs' fastest steps", lambda runs: statistics.median(min(run) for run in runs))


if __name__ == "__main__":
    main()
