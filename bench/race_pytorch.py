#!/usr/bin/env python3
"""Races reckon-rank against a PyTorch peer: the same model, batch and precision, in turns, in one sitting.

    bench/race_pytorch.py --peer DIR/ddp_llama.py --python VENV/bin/python --ranks 1 2 --dtypes fp32 bf16

The peer is a script with the options and the JSON output of a DDP LLaMA trainer: --layers, --hidden, ..., --dtype,
--mode, --steps, --warmup; it prints one JSON object with step_seconds, cpu_seconds_per_step, peak_rss_bytes and loss.
Both sides train on the same pseudo-random tokens with one thread a rank. Wall seconds are medians of steps; a run
during which other programs took part of the machine is marked, because it says little. CPU seconds suffer less.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parents[1]
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


def peer(a, ranks, dtype):
    options = [f"--{name.replace('_', '-')}={value}" for name, value in MODEL.items()]
    command = [a.python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", a.peer,
               f"--mode={a.mode}", f"--dtype={dtype}", f"--steps={a.steps}", f"--warmup={a.warmup}",
               f"--accumulation={a.accumulation}", *options, *(["--compile"] if a.compile else [])]
    out, _, _, others = run(command)
    result = json.loads(out)
    return dict(seconds=result["step_seconds"]["all"][a.warmup:], cpu=max(result["cpu_seconds_per_step"]),
                rss=max(result["peak_rss_bytes"]), loss=result["loss"], others=others)


def plan_text(a, ranks, dtype):
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
parallel: {{data: {ranks}, zero: {1 if a.mode == 'zero1' else 0}}}
precision: {{compute: {dtype}}}
optimizer: {{clip_gradient_norm: 0}}
train: {{steps: {a.steps}, warmup: {a.warmup}, seed: 1}}
"""


def reckon(a, ranks, dtype):
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder, "plan.yaml")
        plan.write_text(plan_text(a, ranks, dtype))
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
    p.add_argument("--mode", default="ddp", choices=["ddp", "zero1"])
    p.add_argument("--compile", action="store_true", help="the peer's torch.compile")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--accumulation", type=int, default=1)
    a = p.parse_args()
    print("dtype ranks  side      tokens/s  median s  (min - max)        CPU s/step  peak RSS MiB  loss first, last   others")
    for dtype in a.dtypes:
        for ranks in a.ranks:
            runs = {"peer": [], "reckon": []}
            for _ in range(a.runs):
                runs["peer"].append(peer(a, ranks, dtype))
                runs["reckon"].append(reckon(a, ranks, dtype))
            tokens = MODEL["seq"] * MODEL["micro_batch"] * ranks * a.accumulation
            medians = {}
            for side, results in runs.items():
                seconds = [s for r in results for s in r["seconds"]]
                medians[side] = statistics.median(seconds)
                cpu = medians[side + " cpu"] = statistics.median(r["cpu"] for r in results)
                print(f"{dtype:5} {ranks:5}  {side:8} {tokens / medians[side]:9.0f}  {medians[side]:8.4f}  "
                      f"({min(seconds):.4f} - {max(seconds):.4f})  {cpu:10.4f}  "
                      f"{max(r['rss'] for r in results) / 2**20:12.0f}  {results[0]['loss'][0]:.4f}, "
                      f"{results[0]['loss'][-1]:.4f}   {max(r['others'] for r in results):6.1%}")
            print(f"{dtype:5} {ranks:5}  reckon / peer: {medians['peer'] / medians['reckon']:.3f} x tokens/s, "
                  f"{medians['peer cpu'] / medians['reckon cpu']:.3f} x tokens per CPU second", flush=True)


if __name__ == "__main__":
    main()
