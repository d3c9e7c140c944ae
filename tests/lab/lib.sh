# Sourced by the scripts beside it.
#   HERE  these scripts
#   LAB   everything the lab writes: $HVSVC_LAB or /var/tmp/hvsvc-lab; the qemu user must reach it, so not below /root
set -euo pipefail
umask 022
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB=$(realpath -m "${HVSVC_LAB:-/var/tmp/hvsvc-lab}")
export LAB HVSVC_LAB=$LAB

# In the order in which they start.
SERVICES=(virtlogd libvirtd mariadb epmd rabbitmq keystone glance placement neutron
  nova-api nova-conductor nova-scheduler nova-compute)

say() { printf 'lab %4ds  %s\n' "$SECONDS" "$*"; }
die() { printf 'lab: %s\n' "$*" >&2; exit 1; }

# alive NAME: the process that we started as NAME runs (its pid was not given to someone else meanwhile)
alive() {
  local pid
  pid=$(cat "$LAB/run/$1.pid" 2>/dev/null) && [ -n "$pid" ] &&
    grep -qsz "^HVSVC_LAB_SERVICE=$1$" "/proc/$pid/environ"
}

# start NAME COMMAND...: in the background, once; output to log/NAME.out
start() {
  local name=$1
  shift
  alive "$name" && return
  HVSVC_LAB_SERVICE=$name setsid "$@" >>"$LAB/log/$name.out" 2>&1 </dev/null 9>&- &
  local pid=$!
  echo $pid >"$LAB/run/$name.pid"
  until alive "$name" || [ ! -d /proc/$pid ]; do sleep 0.02; done # until exec has put the name into its environment
}

# stop NAME...: TERM to each one's pid, and after 20 s KILL
stop() {
  local name pid end=$((SECONDS + 20))
  for name; do
    ! alive "$name" || { say "stopping $name"; kill -TERM "$(cat "$LAB/run/$name.pid")" || true; }
  done
  for name; do
    while alive "$name" && [ $SECONDS -lt $end ]; do sleep 0.1; done
    ! alive "$name" || { say "$name does not stop, killing it"; kill -KILL "$(cat "$LAB/run/$name.pid")" || true; }
    rm -f "$LAB/run/$name.pid"
  done
}

# wait_for WHAT SECONDS NAME COMMAND...: until COMMAND succeeds; fails early when the service NAME has died
wait_for() {
  local what=$1 limit_s=$2 name=$3 end
  shift 3
  end=$((SECONDS + limit_s))
  until "$@" >/dev/null 2>&1; do
    [ "$name" = - ] || alive "$name" || fail "$name ended while the lab waited for $what" "$name"
    [ $SECONDS -lt $end ] || fail "no $what within $limit_s s" "$name"
    sleep 0.25
  done
}

fail() { # fail MESSAGE SERVICE: with the end of what the service printed
  [ "$2" = - ] || tail -n 20 "$LAB/log/$2.out" >&2 || true
  die "$1 (logs: $LAB/log)"
}

port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# port_for NAME PORT: refuses a port that somebody else holds
port_for() {
  alive "$1" || ! port_taken "$2" || die "port $2 is taken; the lab's $1 needs it: stop what listens there"
}
