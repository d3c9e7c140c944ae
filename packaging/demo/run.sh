#!/bin/bash
# The whole job on a small real guest under QEMU: a running domain of 2 vCPUs and 512 MiB gets a ceiling of 8 and 1 GiB
# with one reboot, and then grows to it with none. Needs no root, no KVM, no libvirtd and no systemd; `make demo` installs
# what is missing and calls this. Everything lies in one temporary folder, which is gone afterwards.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/.venv/bin:/usr/sbin:/usr/bin:/sbin:/bin" PYTHONPATH=$PWD

dir=$(mktemp -d /tmp/hvsvc-demo.XXXXXX)
daemon=
export LIBVIRT_LOG_OUTPUTS="4:file:$dir/libvirt.log"

# shellcheck disable=SC2317  # called by the trap
clean_up() {
  local status=$?
  # whoever read the output may be gone: what is printed must not keep the rest from being cleared up
  trap '' INT TERM HUP PIPE
  if [[ -n $daemon ]]; then
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
  fi
  case $status in
    0) ;;
    129 | 130 | 141 | 143) echo "demo: interrupted, clearing up" ;;
    *) [[ ! -s $dir/hvsvc.log ]] || { echo "--- the end of the daemon's log:"; tail -n 20 "$dir/hvsvc.log"; } ;;
  esac >&2 || true
  python packaging/demo/guest.py stop "$dir/libvirt" || true
  rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

bold='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
run() { printf '%s$ %s%s\n' "$bold" "$*" "$plain"; "$@"; }
guest_says() { echo "guest: $(grep -a '^GUEST' "$dir/libvirt/web-1.console" | tail -n 1 | tr -d '\r')"; }
die() { echo "demo: $*" >&2; exit 1; }

mkdir "$dir/image" "$dir/libvirt"
tests/guest/build.sh "$dir/image"
SECONDS=0

say "A running domain, web-1: 2 vCPUs, 512 MiB, nothing to grow into"
python packaging/demo/guest.py start "$dir/libvirt" "$dir/image"
guest_says

cat >"$dir/hvsvc.toml" <<TOML
[libvirt]
uri = "qemu:///embed?root=$dir/libvirt"
[listen]
unix = "$dir/hvsvc.sock"
[journal]
path = "$dir/journal.db"
TOML
# A session of its own, so that Ctrl-C reaches this script alone and the daemon is stopped in order.
setsid hvsvc serve --config "$dir/hvsvc.toml" >"$dir/hvsvc.log" 2>&1 &
daemon=$!
export HVCTL_TARGET="unix://$dir/hvsvc.sock"
for _ in $(seq 100); do
  [[ ! -S $dir/hvsvc.sock ]] || break
  kill -0 "$daemon" 2>/dev/null || die "the daemon ended"
  sleep 0.1
done
run hvctl health
run hvctl dominfo web-1
run hvctl vcpucount web-1

say "What would it take to run 8 vCPUs and 1 GiB?"
run hvctl plan web-1 --vcpus 8 --memory 1GiB --reboot soft

say "Raise the ceiling: one edit, one reboot, and the new maximum read back from the running domain"
run hvctl raise web-1 --max-vcpus 8 --max-memory 1GiB --reboot soft

say "Grow to it: no reboot, the CPUs online in the guest, the balloon at its target"
run hvctl scale web-1 --vcpus 8 --memory 1GiB
run hvctl vcpucount web-1

say "What the guest itself has"
for _ in $(seq 20); do
  ! guest_says | grep -q 'nproc=8 ' || break
  sleep 0.5
done
guest_says
online=$(hvctl -f value vcpucount web-1 -c guest_online)
[[ $online == 8 ]] || die "8 CPUs should be online in the guest, it has $online"
guest_says | grep -q 'nproc=8 ' || die "the guest does not have 8 CPUs by its own count"
printf '\nguest-online %s, done in %s s\n' "$online" "$SECONDS"
