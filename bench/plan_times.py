#!/usr/bin/env python3
"""How well step times are predicted: calibrates this machine, then predicts, runs and compares 20 plans.

    bench/plan_times.py [--rounds 3] [--only NAME ...] [--quick] [--json FILE]

Plans are run in turns, `--rounds` times; a plan's measured time is the median of its runs' median steps. Printed are each
plan's error, where it comes from, the mean absolute error by number of ranks, and Kendall's tau between predicted and
measured order over the pairs of plans whose measured times differ by more than their spread over runs and steps.
The share of the machine that other programs took during a run is printed too: above a few per cent the figures say little.
"""
import argparse, itertools, json, os, pathlib, statistics, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parents[1]

MODELS = dict(
    base="{name: base, layers: 4, hidden: 384, ffn_hidden: 1024, heads: 6, kv_heads: 2, head_dim: 64, vocabulary: 4096}",
    wide="{name: wide, layers: 2, hidden: 768, ffn_hidden: 2048, heads: 12, kv_heads: 4, head_dim: 64, vocabulary: 1024}",
    deep="{name: deep, layers: 8, hidden: 256, ffn_hidden: 688, heads: 4, kv_heads: 4, head_dim: 64, vocabulary: 2048}",
)

# name, ranks, model, keys beside the base plan's; tensor ranks share the KV heads, so degrees divide them.
PLANS = [
    ("one", 1, "base", ""),
    ("one-accumulate", 1, "base", "batch.global_batch=8"),
    ("one-full", 1, "base", "activations.recompute=full activations.recompute_layers=[4]"),
    ("one-wide", 1, "wide", ""),
    ("one-deep-long", 1, "deep", "batch.sequence_length=512 batch.micro_batch=2 batch.global_batch=2"),
    ("one-bf16", 1, "base", "precision.compute=bf16 batch.micro_batch=2 batch.global_batch=2"),
    ("dp2", 2, "base", "parallel.data=2 batch.global_batch=8"),
    ("dp2-zero1", 2, "wide", "parallel.data=2 parallel.zero=1 batch.global_batch=8"),
    ("dp2-elementwise", 2, "deep", "parallel.data=2 batch.global_batch=16 activations.recompute=elementwise activations.recompute_layers=[8]"),
    ("tp2", 2, "base", "parallel.tensor=2"),
    ("sp2", 2, "wide", "parallel.tensor=2 parallel.sequence=true"),
    ("pp2", 2, "deep", "parallel.pipeline=2 batch.micro_batch=2 batch.global_batch=16"),
    ("pp2-gpipe-full", 2, "base", "parallel.pipeline=2 parallel.schedule=gpipe batch.micro_batch=2 batch.global_batch=8 activations.recompute=full activations.recompute_layers=[2]"),
    ("pp2-interleaved", 2, "deep", "parallel.pipeline=2 parallel.schedule=interleaved parallel.chunks=2 batch.micro_batch=2 batch.global_batch=8"),
    ("tp2-bf16", 2, "base", "parallel.tensor=2 precision.compute=bf16 batch.micro_batch=2 batch.global_batch=2"),
    ("dp4", 4, "base", "parallel.data=4 batch.global_batch=16"),
    ("dp4-zero1", 4, "deep", "parallel.data=4 parallel.zero=1 batch.global_batch=16"),
    ("dp2-tp2", 4, "wide", "parallel.data=2 parallel.tensor=2 batch.global_batch=8"),
    ("dp2-pp2", 4, "base", "parallel.data=2 parallel.pipeline=2 batch.micro_batch=2 batch.global_batch=16"),
    ("sp2-pp2", 4, "deep", "parallel.tensor=2 parallel.sequence=true parallel.pipeline=2 batch.micro_batch=2 batch.global_batch=8"),
]


def plan_text(model, steps):
    return f"""reckon: 1
model: {MODELS[model]}
hardware: local
batch: {{sequence_length: 256, micro_batch: 4, global_batch: 4}}
precision: {{compute: fp32}}
train: {{steps: {steps}, warmup: 2, seed: 1}}
"""


def busy_seconds():
    user, nice, system, _, _, irq, softirq, steal = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def run(a, command):
    """Share of the machine that other programs took meanwhile."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(a.work / "cache")}
    busy, children, start = busy_seconds(), os.times(), time.monotonic()
    done = subprocess.run([a.programs / "reckon", *command], capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"reckon {' '.join(map(str, command))} ended with {done.returncode}\n{done.stderr[-2000:]}")
    after = os.times()
    own = after.children_user + after.children_system - children.children_user - children.children_system
    return max(0.0, (busy_seconds() - busy - own) / (os.cpu_count() * (time.monotonic() - start)))


def components(profile):
    return {c["component"]: c["exposed_seconds"] for c in profile["time"]}


GROUPS = {"forward": "compute", "backward": "compute", "recompute": "compute", "optimizer": "optimizer",
          "waiting": "waiting", "bubble": "waiting", "other": "other"}


def by_group(profile):
    """Seconds by kind: compute, optimizer, communication, waiting (bubble included), other."""
    sums = {}
    for name, seconds in components(profile).items():
        group = GROUPS.get(name.split(".")[0], "communication")
        sums[group] = sums.get(group, 0.0) + seconds
    return sums


class Result:
    def __init__(self, name, ranks):
        self.name, self.ranks = name, ranks
        self.medians, self.low, self.high, self.others, self.measured, self.predicted = [], [], [], [], [], None

    def add(self, folder, others):
        measured = json.loads((folder / "measured.json").read_text())
        self.predicted = json.loads((folder / "predicted.json").read_text())
        self.measured.append(measured)
        self.medians.append(measured["step"]["seconds"])
        self.low.append(measured["step"]["interval_seconds"][0])
        self.high.append(measured["step"]["interval_seconds"][1])
        self.others.append(others)

    seconds = property(lambda self: statistics.median(self.medians))
    guess = property(lambda self: self.predicted["step"]["seconds"])
    error = property(lambda self: self.guess / self.seconds - 1)
    noise = property(lambda self: (statistics.median(self.high) - statistics.median(self.low)) / 2
                     + (max(self.medians) - min(self.medians)) / 2)

    def differences(self):
        """Predicted minus measured by kind, as shares of the measured step."""
        measured = [by_group(m) for m in self.measured]
        guess = by_group(self.predicted)
        names = sorted(set(guess) | {n for m in measured for n in m})
        return {n: (guess.get(n, 0.0) - statistics.median(m.get(n, 0.0) for m in measured)) / self.seconds for n in names}


def kendall_tau(results):
    agree = disagree = 0
    for x, y in itertools.combinations(results, 2):
        if abs(x.seconds - y.seconds) <= x.noise + y.noise:
            continue
        same = (x.seconds - y.seconds) * (x.guess - y.guess)
        agree += same > 0
        disagree += same < 0
    return (agree - disagree) / max(1, agree + disagree), agree + disagree


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/cpu/bin")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--backend", default="mpi", choices=["mpi", "threads"])
    p.add_argument("--only", nargs="+", help="names of plans")
    p.add_argument("--quick", action="store_true", help="short calibration")
    p.add_argument("--work", type=pathlib.Path, help="folder to keep; the calibration in it is used again")
    p.add_argument("--json", type=pathlib.Path, help="write the figures here too")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        a.work = (a.work or pathlib.Path(temporary)).resolve()
        race(a)


def race(a):
    plans = [plan for plan in PLANS if not a.only or plan[0] in a.only]
    results = {name: Result(name, ranks) for name, ranks, *_ in plans}
    for name, ranks, model, keys in plans:
        folder = a.work / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "given.yaml").write_text(plan_text(model, a.steps))
        others = run(a, ["calibrate", "--plan", folder / "given.yaml", *(["--quick"] if a.quick else []), *keys.split()])
        print(f"calibrated for {name} (others took {others:.0%})", file=sys.stderr, flush=True)
    for round_ in range(a.rounds):
        for name, ranks, model, keys in plans:
            folder = a.work / name
            others = run(a, ["run", folder / "given.yaml", "--out", folder / "run", "--backend", a.backend, *keys.split()])
            results[name].add(folder / "run", others)
            print(f"round {round_ + 1}: {name} {results[name].medians[-1] * 1e3:.1f} ms (others took {others:.0%})",
                  file=sys.stderr, flush=True)
    print_results(list(results.values()), a.json)


def print_results(results, file):
    print(f"{'plan':16} ranks  predicted    measured     noise   error  others  by kind, share of the measured step")
    for r in results:
        kinds = "  ".join(f"{n} {d:+.1%}" for n, d in r.differences().items() if abs(d) >= 0.005)
        print(f"{r.name:16} {r.ranks:5}  {r.guess * 1e3:7.1f} ms  {r.seconds * 1e3:7.1f} ms  {r.noise * 1e3:6.1f}  {r.error:+6.1%}"
              f"  {max(r.others):6.0%}  {kinds}")
    summary = {}
    for ranks in sorted({r.ranks for r in results}):
        errors = [abs(r.error) for r in results if r.ranks == ranks]
        summary[ranks] = statistics.mean(errors)
        print(f"{ranks} rank{'s' if ranks > 1 else ''}: mean absolute error {summary[ranks]:.1%} over {len(errors)} plans")
    tau, pairs = kendall_tau(results)
    print(f"Kendall's tau {tau:.3f} over {pairs} pairs that differ by more than the noise")
    if file:
        rows = [dict(plan=r.name, ranks=r.ranks, predicted=r.guess, measured=r.seconds, noise=r.noise, error=r.error,
                     others=r.others, differences=r.differences()) for r in results]
        file.write_text(json.dumps(dict(mean_absolute_error=summary, kendall_tau=tau, pairs=pairs, plans=rows), indent=1))


if __name__ == "__main__":
    main()
