# Every legal plan for four cores, the fastest first. (The first line tells how long the search itself took.)
reckon search tiny.yaml --devices 4 --top 3 | tail -n +3
