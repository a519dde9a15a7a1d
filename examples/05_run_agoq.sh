# As rows grow under one memory limit, Megatron-LM recomputes more layers and AGoQ none. (Times differ from machine to machine.)
./agoq_table.sh | sed -E 's/ +[0-9]+ ms/      -- ms/g'
# A limit that activations kept as computed cannot meet: exit code 4. Stored as AGoQ does, the same plan trains.
for method in megatron agoq; do
  code=0
  reckon run agoq.yaml method=$method activations.recompute=none batch.sequence_length=768 --backend threads \
    --out "$SCRATCH/$method" >/dev/null 2>&1 || code=$?
  echo "method $method without recomputation: exit code $code"
done
