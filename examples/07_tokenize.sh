# Documents with their borders in a token file: from JSONL by bytes, read back by a plan that packs them.
printf '{"text": "Dead reckoning gives the place"}\n{"text": "from speed and heading;"}\n{"text": "a fix corrects it."}\n' >"$SCRATCH/log.jsonl"
cd "$SCRATCH" && reckon tokenize log.jsonl --out log.tokens
od -A d -t x1z -N 32 log.tokens
cd - >/dev/null
reckon plan tiny.yaml documents.source="$SCRATCH/log.tokens" --json | grep -A 8 '"packing"'
printf '{"text": "fine"}\n{"text": broken\n' >"$SCRATCH/bad.jsonl"
cd "$SCRATCH" && reckon tokenize bad.jsonl --out bad.tokens
echo "exit code: $?"
