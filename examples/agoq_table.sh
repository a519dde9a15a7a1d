#!/usr/bin/env bash
# Table 2 of the AGoQ paper on eight ranks of this machine: for three row lengths under one memory limit, the layers that each
# stage of Megatron-LM, ZeRO-1 and AGoQ recomputes, the time of an iteration and the peak of the worst rank, both predicted and
# measured. (With one replica ZeRO-1 has nobody to share states with, so it is Megatron-LM again.)
#
#   agoq_table.sh [STEPS] [key=value ...]     agoq_table.sh 5 hardware=local train.warmup=2    (calibrates this machine first);
# for a processor with BF16 products add precision.compute=bf16 memory.limit='15.2 MiB' to that: two-cores.yaml describes one
# without, whose products take FP32 copies, so that its BF16 plans are predicted to need up to 8 % more than such a processor uses.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")"
steps=${1:-1}
shift || true
scratch=${SCRATCH:-$(mktemp -d)}

# numbers FILE KEY: the values of a key in a profile
numbers() { awk -v key="\"$2\":" '$1 == key { gsub(",", "", $2); print $2 }' "$1"; }
peak() { numbers "$1" peak_allocated | sort -n | tail -1; }
# The first "seconds" after "step" is the iteration's.
seconds() { awk '$1 == "\"step\":" { inside = 1 } inside && $1 == "\"seconds\":" { gsub(",", "", $2); print $2; exit }' "$1"; }

echo "                recomputed layers  iteration             peak of the worst rank"
echo "rows  system    of each stage      predicted   measured  predicted     measured"
for length in 256 512 768; do
  for system in megatron zero1 agoq; do
    run=$scratch/$system-$length
    if ! reckon run agoq.yaml --steps "$steps" --backend threads --out "$run" method=$system batch.sequence_length=$length "$@" \
      >/dev/null 2>"$scratch/log"; then
      tail -1 "$scratch/log"
      exit 1
    fi
    awk -v length_="$length" -v system_="$system" -v layers="$(numbers "$run/predicted.json" recomputed_layers | paste -sd ' ')" \
      -v seconds="$(seconds "$run/predicted.json")" -v measured_seconds="$(seconds "$run/measured.json")" \
      -v peak="$(peak "$run/predicted.json")" -v measured_peak="$(peak "$run/measured.json")" 'BEGIN {
        printf "%-5s %-9s %-17s %8.0f ms %7.0f ms  %.1f KiB  %.1f KiB\n", length_, system_, layers, 1e3 * seconds,
               1e3 * measured_seconds, peak / 1024, measured_peak / 1024 }'
  done
done
