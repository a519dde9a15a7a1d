#!/usr/bin/env python3
"""How well step times are predicted: calibrates this machine, then predicts, runs and compares 20 plans.

    bench/plan_times.py [--quick] [--rounds 2] [--only NAME ...] [--twice [--no-runs]] [--json FILE]

It is calibrated once for all plans, in their exact shapes, and once without a shape of any of them, so that both kinds of
prediction are compared. Plans are run in turns, `--rounds` times; a plan's measured time is the median of its runs' median steps. Printed are each
plan's error, where it comes from, the mean absolute error by number of ranks, and Kendall's tau between predicted and
measured order over the pairs of plans whose measured times differ by more than their spread over runs and steps.
The share of the machine that other programs took during a run is printed too: above a few per cent the figures say little.
The last lines give each bar with its figure and whether it is met.
"""
import argparse, itertools, json, os, pathlib, re, statistics, subprocess, sys, tempfile, time

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

# Other methods, for the bar over mixed plans.
MORE = [
    ("one-stored4", 1, "base", "activations.stored=int4"),
    ("dp2-zero3", 2, "base", "parallel.data=2 parallel.zero=3 batch.global_batch=8"),
    ("ulysses2", 2, "base", "parallel.ulysses=2"),
    ("ring2-packed", 2, "base", "parallel.ring=2 batch.sequence_length=1024 batch.micro_batch=1 batch.global_batch=1 documents.source=fineweb"),
]


def plan_text(model, steps, keys):
    """The base plan with `a.b=value` keys put in."""
    plan = {"reckon": "1", "model": MODELS[model], "hardware": "local",
            "batch": {"sequence_length": "256", "micro_batch": "4", "global_batch": "4"},
            "precision": {"compute": "fp32"}, "train": {"steps": str(steps), "warmup": "2", "seed": "1"}}
    for key, value in (word.split("=") for word in keys.split()):
        section, name = key.split(".")
        plan.setdefault(section, {})[name] = value
    lines = []
    for key, value in plan.items():
        text = value if isinstance(value, str) else "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
        lines.append(f"{key}: {text}")
    return "\n".join(lines) + "\n"


def busy_seconds():
    user, nice, system, _, _, irq, softirq, steal = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def reckon(a, *command):
    """Standard output, and the share of the machine that other programs took meanwhile."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(a.work / "cache")}
    busy, children, start = busy_seconds(), os.times(), time.monotonic()
    done = subprocess.run([a.programs / "reckon", *map(str, command)], capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"reckon {' '.join(map(str, command))} ended with {done.returncode}\n{done.stderr[-2000:]}")
    for line in done.stderr.splitlines():
        if "quiet" in line:
            print(line, file=sys.stderr)
    after = os.times()
    own = after.children_user + after.children_system - children.children_user - children.children_system
    return done.stdout, max(0.0, (busy_seconds() - busy - own) / (os.cpu_count() * (time.monotonic() - start)))


def calibrate(a, file, plans):
    """Measures into `file`: all plans' shapes at once, or none (the shapes that every calibration has)."""
    start = time.monotonic()
    effort = ["--quick"] if a.quick else []
    shapes = [word for name, *_ in plans for word in ("--plan", a.work / name / "given.yaml")]
    _, others = reckon(a, "calibrate", "--force", "--out", file, *effort, *shapes)
    print(f"calibrated {file.stem} in {time.monotonic() - start:.0f} s (others took {others:.0%})", file=sys.stderr, flush=True)


def predict(a, hardware, name, ranks):
    """Step seconds with that hardware file, which is given a device for each rank as `hardware: local` would have."""
    own = a.work / f"{hardware.stem}-{ranks}.yaml"
    own.write_text(re.sub(r"^devices_per_node: .*", f"devices_per_node: {ranks}", hardware.read_text(), flags=re.M))
    out, _ = reckon(a, "plan", a.work / name / "given.yaml", f"hardware={own}", "--json")
    return json.loads(out)


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
        self.medians, self.low, self.high, self.others, self.measured = [], [], [], [], []
        self.predicted = self.grid = self.again = None  # exact shapes, no shape of its own, exact shapes measured again

    def add(self, folder, others):
        measured = json.loads((folder / "measured.json").read_text())
        self.measured.append(measured)
        self.medians.append(measured["step"]["seconds"])
        self.low.append(measured["step"]["interval_seconds"][0])
        self.high.append(measured["step"]["interval_seconds"][1])
        self.others.append(others)

    seconds = property(lambda self: statistics.median(self.medians))
    guess = property(lambda self: self.predicted["step"]["seconds"])
    error = property(lambda self: self.guess / self.seconds - 1)
    grid_error = property(lambda self: self.grid["step"]["seconds"] / self.seconds - 1)
    change = property(lambda self: self.again["step"]["seconds"] / self.guess - 1)
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
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--steps", type=int, default=7)
    p.add_argument("--backend", default="mpi", choices=["mpi", "threads"])
    p.add_argument("--only", nargs="+", help="names of plans")
    p.add_argument("--quick", action="store_true", help="short calibrations")
    p.add_argument("--twice", action="store_true", help="calibrate once more at the end and compare the predictions")
    p.add_argument("--no-runs", action="store_true", help="with --twice: only the two calibrations")
    p.add_argument("--work", type=pathlib.Path, help="folder to keep")
    p.add_argument("--json", type=pathlib.Path, help="write the figures here too")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        a.work = (a.work or pathlib.Path(temporary)).resolve()
        race(a)


def race(a):
    plans = [plan for plan in PLANS + MORE if not a.only or plan[0] in a.only]
    results = {name: Result(name, ranks) for name, ranks, *_ in plans}
    for name, _, model, keys in plans:
        (a.work / name).mkdir(parents=True, exist_ok=True)
        (a.work / name / "given.yaml").write_text(plan_text(model, a.steps, keys))
    exact, grid, again = (a.work / f"{kind}.yaml" for kind in ("exact", "grid", "again"))
    for old in (exact, grid, again):
        old.unlink(missing_ok=True)  # a calibration keeps what an earlier file of the machine knows of other shapes
    calibrate(a, exact, plans)
    for name, ranks, *_ in plans:
        results[name].predicted = predict(a, exact, name, ranks)
    if not a.no_runs:
        calibrate(a, grid, [])
        for name, ranks, *_ in plans:
            results[name].grid = predict(a, grid, name, ranks)
        for round_ in range(a.rounds):
            for name, ranks, *_ in plans:
                folder = a.work / name
                _, others = reckon(a, "run", folder / "given.yaml", "--out", folder / "run", "--backend", a.backend,
                                   f"hardware={a.work / f'exact-{ranks}.yaml'}")
                results[name].add(folder / "run", others)
                print(f"round {round_ + 1}: {name} {results[name].medians[-1] * 1e3:.1f} ms (others took {others:.0%})",
                      file=sys.stderr, flush=True)
    if a.twice:
        calibrate(a, again, plans)
        for name, ranks, *_ in plans:
            results[name].again = predict(a, again, name, ranks)
    print_results(a, list(results.values()))


def mean_error(results, error):
    return statistics.mean(abs(error(r)) for r in results) if results else 0.0


def bars(a, results):
    """(what, figure, limit, whether the figure must be below it), of what was measured."""
    if not a.no_runs:
        first = [r for r in results if r.name in {name for name, *_ in PLANS}]
        for ranks, limit in ((1, 0.08), (2, 0.08), (4, 0.15)):
            some = [r for r in first if r.ranks == ranks]
            if some:
                yield f"{ranks} rank(s), {len(some)} plans: mean absolute error", mean_error(some, lambda r: r.error), limit, True
        tau, pairs = kendall_tau(first)
        yield f"Kendall's tau over {pairs} pairs that differ by more than the noise", tau, 0.8, False
        yield f"{len(results)} plans, exact shapes: mean absolute error", mean_error(results, lambda r: r.error), 0.06, True
        yield f"{len(results)} plans, no shape of their own: mean absolute error", mean_error(results, lambda r: r.grid_error), 0.06, True
    if a.twice:
        some = sorted(results, key=lambda r: r.name)[::max(1, len(results) // 5)][:5]
        yield (f"two calibrations, largest change of {', '.join(r.name for r in some)}",
               max(abs(r.change) for r in some), 0.03, True)
        yield f"two calibrations, largest change of all {len(results)}", max(abs(r.change) for r in results), 0.03, True


def print_results(a, results):
    if not a.no_runs:
        print(f"{'plan':16} ranks  predicted    measured     noise   error  no shape  others  by kind, share of the measured step")
        for r in results:
            kinds = "  ".join(f"{n} {d:+.1%}" for n, d in r.differences().items() if abs(d) >= 0.005)
            print(f"{r.name:16} {r.ranks:5}  {r.guess * 1e3:7.1f} ms  {r.seconds * 1e3:7.1f} ms  {r.noise * 1e3:6.1f}  {r.error:+6.1%}"
                  f"    {r.grid_error:+6.1%}  {max(r.others):6.0%}  {kinds}")
    if a.twice:
        for r in results:
            print(f"{r.name:16} {r.guess * 1e3:7.1f} ms, calibrated again {r.again['step']['seconds'] * 1e3:7.1f} ms  {r.change:+6.2%}")
    verdicts = list(bars(a, results))
    for what, figure, limit, below in verdicts:
        met = figure < limit if below else figure > limit
        print(f"{'met   ' if met else 'MISSED'}  {what}: {figure:.3f} (bar: {'<' if below else '>'} {limit})")
    if a.json:
        rows = [dict(plan=r.name, ranks=r.ranks, predicted=r.guess, grid=r.grid and r.grid["step"]["seconds"],
                     again=r.again and r.again["step"]["seconds"],
                     **({} if a.no_runs else dict(measured=r.seconds, noise=r.noise, error=r.error, others=r.others,
                                                  differences=r.differences()))) for r in results]
        a.json.write_text(json.dumps(dict(bars=[dict(what=w, figure=f, limit=l) for w, f, l, _ in verdicts], plans=rows), indent=1))


if __name__ == "__main__":
    main()
