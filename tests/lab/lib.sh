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

# launch NAME: the one line with which each service is started; up.sh and service.sh use it
launch() {
  cd "$LAB"
  export OS_KEYSTONE_CONFIG_DIR=$LAB/etc/keystone OS_PLACEMENT_CONFIG_DIR=$LAB/etc/placement
  export OS_GLANCE_CONFIG_DIR=$LAB/etc/glance OS_NOVA_CONFIG_DIR=$LAB/etc/nova
  case $1 in
    virtlogd | libvirtd) start "$1" "$1" ;;
    mariadb)
      start mariadb mariadbd --no-defaults --user=root --datadir="$LAB/db/mysql" --socket="$LAB/run/mysql.sock" \
        --skip-networking --innodb-flush-log-at-trx-commit=0 --innodb-flush-method=nosync --max-connections=400
      ;;
    epmd) start epmd epmd -address 127.0.0.1 ;;
    rabbitmq)
      port_for rabbitmq 5672
      start rabbitmq env HOME="$LAB/db" ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_NODENAME=hvsvc-lab@localhost \
        RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT=5672 RABBITMQ_MNESIA_BASE="$LAB/db/rabbitmq" \
        RABBITMQ_LOG_BASE="$LAB/log" RABBITMQ_ENABLED_PLUGINS_FILE="$LAB/etc/rabbitmq_plugins" \
        RABBITMQ_CONFIG_FILE="$LAB/etc/rabbitmq" \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}" \
        /usr/lib/rabbitmq/bin/rabbitmq-server
      ;;
    keystone) api keystone keystone_api.py 5000 2 ;;
    placement) api placement placement_api.py 8778 1 ;;
    glance) api glance glance_api.py 9292 1 ;;
    nova-api) api nova-api nova_api.py 8774 2 ;;
    neutron) port_for neutron 9696 && start neutron python3 "$HERE/neutron_stub.py" ;;
    nova-conductor | nova-scheduler) start "$1" "$1" --config-file etc/nova/nova.conf ;;
    nova-compute)
      start nova-compute /usr/bin/python3 "$HERE/nova_compute.py" --config-file etc/nova/nova.conf \
        --log-file nova-compute.log
      ;;
    *) die "no service $1; there are: ${SERVICES[*]}" ;;
  esac
}

# api NAME FILE PORT PROCESSES
api() {
  port_for "$1" "$3"
  start "$1" uwsgi --plugin python3 --master --die-on-term --need-app --lazy-apps --buffer-size 65535 \
    --enable-threads --processes "$4" --threads 1 --add-header "Connection: close" \
    --http-socket "127.0.0.1:$3" --wsgi-file "$HERE/wsgi/$2"
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
