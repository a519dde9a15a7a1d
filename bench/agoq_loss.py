#!/usr/bin/env python3
"""Trains one model twice from the same seed, with activations kept in compute precision and stored as AGoQ stores them, and
compares final losses and the memory of activations at the peak.

    bench/agoq_loss.py --reckon build/cpu/bin/reckon --steps 320

The final loss is the mean of the last tenth of the steps, because single steps see different text and scatter by some per cent.
The learning rate falls along a cosine, so that they settle. Memory is what activations and what an op needs while it runs take
together at the peak: which of two moments that are nearly alike is the peak decides how it divides between the two.
Exit code 1 where the final losses differ by more than --tolerance, or the measured ratio of memory is off the predicted one by 1 %.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

KEPT = ["activations.stored=bf16"]
AGOQ = [
    "activations.stored=fp4_e2m1",
    "activations.block=128",
    "activations.classes={query: bf16, key: bf16, value: bf16, attention_output: bf16, qkv_input: recompute, "
    "ffn_input: recompute, down_input: recompute, head_input: bf16}",
]


def run(arguments, name, settings, folder):
    out = folder / name
    overrides = ["precision.compute=bf16", "parallel.data=1", f"batch.sequence_length={arguments.length}",
                 f"batch.micro_batch={arguments.rows}", f"batch.global_batch={arguments.rows}",
                 f"train.seed={arguments.seed}", f"train.data={arguments.data}", "optimizer.schedule=cosine", *settings]
    subprocess.run([arguments.reckon, "run", arguments.plan, "--steps", str(arguments.steps), "--backend", "threads",
                    "--out", str(out), *overrides], check=True, stdout=subprocess.DEVNULL)
    lines = (out / "metrics.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss"] for line in lines]
    stages = [json.loads((out / f"{source}.json").read_text())["stages"][0]["memory"] for source in ("predicted", "measured")]
    return losses, [memory["activations"] + memory["transient"] for memory in stages]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reckon", default="reckon")
    parser.add_argument("--plan", default="cpu-demo")
    parser.add_argument("--data", default="/usr/share/common-licenses")
    parser.add_argument("--steps", type=int, default=320)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=0.01)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kept, kept_bytes = run(arguments, "kept", KEPT, folder)
        agoq, agoq_bytes = run(arguments, "agoq", AGOQ, folder)
    tail = max(1, arguments.steps // 10)
    final = [sum(losses[-tail:]) / tail for losses in (kept, agoq)]
    difference = final[1] / final[0] - 1
    ratios = [kept_bytes[i] / agoq_bytes[i] for i in (0, 1)]
    for step in range(0, arguments.steps, max(1, arguments.steps // 10)):
        print(f"step {step + 1:5d}  kept {kept[step]:.4f}  agoq {agoq[step]:.4f}")
    print(f"final loss (mean of the last {tail} steps): kept {final[0]:.4f}, agoq {final[1]:.4f}, {difference:+.2%}")
    print(f"activations and transients at the peak: kept {kept_bytes[1]} bytes, agoq {agoq_bytes[1]} bytes: {ratios[1]:.3f}x (predicted {ratios[0]:.3f}x)")
    return 0 if abs(difference) <= arguments.tolerance and abs(ratios[1] / ratios[0] - 1) <= 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
