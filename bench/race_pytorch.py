#!/usr/bin/env python3
"""Races reckon-rank against a PyTorch peer: the same model, batch and precision, in turns, in one sitting.

    bench/race_pytorch.py --peer DIR/ddp_llama.py --python VENV/bin/python --ranks 1 2 4 --modes ddp zero1 fsdp2 [--compile]

The peer is a script with the options and the JSON output of a DDP LLaMA trainer: --layers, --hidden, ..., --dtype,
--mode, --steps, --warmup; it prints one JSON object with step_seconds, cpu_seconds_per_step, peak_rss_bytes and loss.
Both sides start from the same weights (the peer writes them once, with --save; its Python needs safetensors) and train on
the same pseudo-random tokens with one thread a rank, so that their losses are compared too; the script ends with 1 where
they differ by more than 1e-5 (FP32) or 1 % (BF16, where the two round at different places). Wall seconds are medians of
steps; the share of the machine that other programs took is printed, because a disturbed run says little. CPU seconds
suffer less.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parents[1]
ZERO = dict(ddp=0, zero1=1, fsdp2=2, fsdp3=3)
LOSS_TOLERANCE = dict(fp32=1e-5, bf16=1e-2)
MODEL = dict(layers=4, hidden=384, ffn=1024, heads=6, kv_heads=2, vocab=4096, seq=256, micro_batch=4)


def busy_seconds():
    user, nice, system, _, _, irq, softirq, steal = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def run(command, **environment):
    """Standard output, CPU seconds, largest resident set of one process, and the share of the machine others took."""
    before, start = busy_seconds(), time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=os.environ | {"OMP_NUM_THREADS": "1"} | environment)
    out, err = child.stdout.read(), child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {child.returncode}\n{err[-2000:]}")
    cpu = usage.ru_utime + usage.ru_stime
    others = (busy_seconds() - before - cpu) / (os.cpu_count() * (time.monotonic() - start))
    return out, cpu, usage.ru_maxrss * 1024, max(0.0, others)


def peer_command(a, ranks, mode, dtype, *more):
    options = [f"--{name.replace('_', '-')}={value}" for name, value in MODEL.items()]
    return [a.python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", a.peer,
            f"--mode={mode}", f"--dtype={dtype}", f"--accumulation={a.accumulation}", *options, *more]


def write_weights(a, file):
    """The initial weights of both sides."""
    run(peer_command(a, 1, "ddp", "fp32", "--steps=1", "--warmup=0", f"--save={file}"))


def peer(a, ranks, mode, dtype, weights):
    out, _, _, others = run(peer_command(a, ranks, mode, dtype, f"--steps={a.steps}", f"--warmup={a.warmup}",
                                         f"--load={weights}", *(["--compile"] if a.compile else [])))
    result = json.loads(out)
    return dict(seconds=result["step_seconds"]["all"][a.warmup:], cpu=max(result["cpu_seconds_per_step"]),
                rss=max(result["peak_rss_bytes"]), loss=result["loss"], others=others)


def plan_text(a, ranks, mode, dtype, weights):
    m = MODEL
    return f"""reckon: 1
model: {{name: race, layers: {m['layers']}, hidden: {m['hidden']}, ffn_hidden: {m['ffn']}, heads: {m['heads']},
        kv_heads: {m['kv_heads']}, head_dim: {m['hidden'] // m['heads']}, vocabulary: {m['vocab']}}}
hardware:
  name: race
  device: {{name: processor, memory: 8 GiB, memory_bandwidth: 10 GB/s, is_cpu: true, peak: {{fp32: 1 TFLOP/s, bf16: 1 TFLOP/s}}}}
  devices_per_node: {ranks}
  intra_node: {{bandwidth: 10 GB/s, latency: 1 us}}
  inter_node: {{bandwidth: 10 GB/s, latency: 1 us}}
batch: {{sequence_length: {m['seq']}, micro_batch: {m['micro_batch']}, global_batch: {m['micro_batch'] * ranks * a.accumulation}}}
parallel: {{data: {ranks}, zero: {ZERO[mode]}}}
precision: {{compute: {dtype}}}
optimizer: {{clip_gradient_norm: 0}}
train: {{steps: {a.steps}, warmup: {a.warmup}, seed: 1, initial_weights: {weights}}}
"""


def reckon(a, ranks, mode, dtype, weights):
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder, "plan.yaml")
        plan.write_text(plan_text(a, ranks, mode, dtype, weights))
        launcher = [] if ranks == 1 else ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca",
                                          "mpi_yield_when_idle", "1", "-n", str(ranks)]
        backend = "threads" if ranks == 1 else "mpi"
        command = [*launcher, a.rank_program, "train", "--plan", plan, "--out", folder, "--backend", backend]
        _, _, rss, others = run(command, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        steps = [json.loads(line) for line in pathlib.Path(folder, "metrics.jsonl").read_text().splitlines()]
    return dict(seconds=[s["seconds"] for s in steps[a.warmup:]],
                cpu=statistics.median(s["cpu_seconds"] for s in steps[a.warmup:]), rss=rss,
                loss=[s["loss"] for s in steps], others=others)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--peer", required=True, help="the PyTorch script")
    p.add_argument("--python", default=sys.executable, help="a Python that has torch")
    p.add_argument("--rank-program", default=ROOT / "build/cpu/bin/reckon-rank")
    p.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    p.add_argument("--dtypes", nargs="+", default=["fp32", "bf16"])
    p.add_argument("--modes", nargs="+", default=["ddp"], choices=list(ZERO), help="ddp = ZeRO-0, fsdp2 = ZeRO-2, fsdp3 = ZeRO-3")
    p.add_argument("--compile", action="store_true", help="the peer's torch.compile")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--accumulation", type=int, default=1)
    a = p.parse_args()
    print("dtype mode  ranks  side      tokens/s  median s  (min - max)        CPU s/step  peak RSS MiB  loss first, last   others")
    equal = True
    with tempfile.TemporaryDirectory() as folder:
        weights = pathlib.Path(folder, "weights.safetensors")
        write_weights(a, weights)
        for dtype in a.dtypes:
            for mode in a.modes:
                for ranks in a.ranks:
                    equal &= race(a, ranks, mode, dtype, weights)
    sys.exit(0 if equal else 1)


def race(a, ranks, mode, dtype, weights):
    """One setting on both sides in turns. True where the losses agree."""
    runs = {"peer": [], "reckon": []}
    for _ in range(a.runs):
        runs["peer"].append(peer(a, ranks, mode, dtype, weights))
        runs["reckon"].append(reckon(a, ranks, mode, dtype, weights))
    tokens = MODEL["seq"] * MODEL["micro_batch"] * ranks * a.accumulation
    name, medians = f"{dtype:5} {mode:5} {ranks:5}", {}
    for side, results in runs.items():
        seconds = [s for r in results for s in r["seconds"]]
        medians[side] = statistics.median(seconds)
        cpu = medians[side + " cpu"] = statistics.median(r["cpu"] for r in results)
        print(f"{name}  {side:8} {tokens / medians[side]:9.0f}  {medians[side]:8.4f}  "
              f"({min(seconds):.4f} - {max(seconds):.4f})  {cpu:10.4f}  "
              f"{max(r['rss'] for r in results) / 2**20:12.0f}  {results[0]['loss'][0]:.4f}, "
              f"{results[0]['loss'][-1]:.4f}   {max(r['others'] for r in results):6.1%}")
    apart = max(abs(x / y - 1) for x, y in zip(runs["peer"][0]["loss"], runs["reckon"][0]["loss"]))
    agree = apart < LOSS_TOLERANCE[dtype]
    print(f"{name}  reckon / peer{' compiled' if a.compile else ''}: {medians['peer'] / medians['reckon']:.3f} x tokens/s, "
          f"{medians['peer cpu'] / medians['reckon cpu']:.3f} x tokens per CPU second; losses differ by {apart:.1e}"
          f"{'' if agree else ', TOO MUCH'}", flush=True)
    return agree


if __name__ == "__main__":
    main()
