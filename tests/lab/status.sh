#!/bin/bash
# One line for each part of the lab. Exit code 0 when all of it runs, 1 when some does, 2 when none does.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
running=0 missing=0
for name in "${SERVICES[@]}"; do
  if alive "$name"; then
    printf '%-15s pid %s\n' "$name" "$(cat "$LAB/run/$name.pid")"
    running=$((running + 1))
  elif [[ $name =~ ^(virtlogd|libvirtd|epmd)$ ]]; then
    printf '%-15s not started by the lab\n' "$name"
  else
    printf '%-15s -\n' "$name"
    missing=$((missing + 1))
  fi
done
[ $running -gt 0 ] || exit 2
[ $missing = 0 ]
