# The same step played event by event, under a limit that the optimizer does not fit into: exit code 4.
reckon simulate tiny.yaml --memory-limit 1200KiB | grep -A 3 -E 'FITS|DOES NOT FIT|OUT OF MEMORY|runs out'
echo "exit code ${PIPESTATUS[0]}"
