"""What the benches of documents share: `reckon run` again and again, in turns, and medians of what came out."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time


def parser(description, out, steps, rounds):
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--plan", default="cpu-hsap")
    options.add_argument("--steps", type=int, default=steps, help="of one run; the first does not count")
    options.add_argument("--rounds", type=int, default=rounds, help="every run is made as often, in turns")
    options.add_argument("--out", type=pathlib.Path, default=pathlib.Path(out))
    options.add_argument("--backend", default="")
    options.add_argument("--reckon", default="reckon")
    options.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    return options


def run(options, name, keys):
    """Predicted and measured profile of one run, which goes into the folder `name`."""
    folder = options.out / name
    command = [options.reckon, "run", options.plan, "--steps", str(options.steps), "--out", str(folder), "--json",
               "train.warmup=1", *keys, *options.overrides]
    if options.backend:
        command += ["--backend", options.backend]
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "progress.log", "a") as log:
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=log)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with exit code {ended.returncode}; see {options.out / 'progress.log'}")
    return [json.loads((folder / file).read_text()) for file in ("predicted.json", "measured.json")]


class Runs:
    """Profiles by case, over rounds."""

    def __init__(self, options, cases):
        """`cases`: name -> keys."""
        start = time.monotonic()
        self.profiles = {name: [] for name in cases}
        for turn in range(options.rounds):
            for name, keys in cases.items():
                self.profiles[name].append(run(options, name, keys))
                print(f"round {turn + 1} of {options.rounds}: {name}, {time.monotonic() - start:.0f} s", file=sys.stderr)
        self.seconds = time.monotonic() - start

    def median(self, name, figure):
        """(predicted, measured) of `figure(profile)`, each the median over rounds."""
        return [statistics.median(figure(profiles[i]) for profiles in self.profiles[name]) for i in (0, 1)]


def step_seconds(profile):
    return profile["step"]["seconds"]
