#!/bin/bash
# Brings the lab up: a real Nova with its libvirt driver on this one machine, on 127.0.0.1. Idempotent. Needs root.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ "$(id -u)" = 0 ] || die "needs root: it installs packages and runs libvirtd"
case $LAB/ in /root/*) die "HVSVC_LAB=$LAB: the qemu user cannot reach folders below /root" ;; esac
mkdir -p "$LAB"/{etc,log,run,db,guest} "$LAB"/state/{glance,staging,tasks,nova/instances,nova/lock}
chmod 700 "$LAB/run" "$LAB/db"
exec 9>"$LAB/run/lock"
flock -w 600 9 || die "another up.sh or down.sh holds $LAB/run/lock"
cd "$LAB"

bash "$HERE/packages.sh"
bash "$HERE/config.sh"
timeout 300 "$HERE/../guest/build.sh" "$LAB/guest" >log/guest-build.out 2>&1 9>&- & guest_pid=$!
. etc/admin.rc

say "libvirt"
# libvirt probes QEMU again at every call, 4 s each, when its qemu user may not open the /dev/kvm that is there.
[ ! -e /dev/kvm ] || setpriv --reuid=libvirt-qemu --regid=kvm --init-groups test -w /dev/kvm ||
  say "warning: user libvirt-qemu cannot open /dev/kvm, everything will be slow: chgrp kvm /dev/kvm"
if ! alive libvirtd && ! timeout 20 virsh -c qemu:///system version >/dev/null 2>&1; then
  had_bridge=$(ip -o link show virbr0 2>/dev/null || true)
  mkdir -p /run/libvirt
  launch virtlogd
  wait_for "virtlogd" 20 virtlogd test -S /run/libvirt/virtlogd-sock
  launch libvirtd
  wait_for "libvirtd" 60 libvirtd virsh -c qemu:///system version
  # The default network may be set to start with libvirtd; the lab needs none.
  [ -n "$had_bridge" ] || virsh -q -c qemu:///system net-destroy default >/dev/null 2>&1 || true
fi

say "database and message queue"
if [ ! -d db/mysql/mysql ]; then
  mariadb-install-db --no-defaults --datadir="$LAB/db/mysql" --user=root --skip-test-db \
    --auth-root-authentication-method=normal >log/mariadb-install.out 2>&1 || fail "mariadb-install-db" mariadb-install
fi
launch mariadb
alive rabbitmq || port_taken 4369 || launch epmd
launch rabbitmq
SQL=(mariadb --no-defaults --socket="$LAB/run/mysql.sock" -uroot)
wait_for "answer from MariaDB" 60 mariadb "${SQL[@]}" -e 'select 1'
for name in keystone placement glance nova_api nova nova_cell0; do
  echo "create database if not exists $name character set utf8;"
done | "${SQL[@]}"

say "database schemas"
NOVA=(nova-manage --config-file etc/nova/nova.conf)
schema() { # schema NAME COMMANDS: once; the file db/NAME.done says that it was done whole
  [ ! -e "db/$1.done" ] || return 0
  (set -e; "$2") >"log/$1-schema.out" 2>&1 && touch "db/$1.done"
}
keystone_schema() {
  local manage=(keystone-manage --config-file etc/keystone/keystone.conf)
  mkdir -p db/fernet db/credential
  "${manage[@]}" db_sync
  "${manage[@]}" fernet_setup --keystone-user root --keystone-group root
  "${manage[@]}" credential_setup --keystone-user root --keystone-group root
  "${manage[@]}" bootstrap --bootstrap-password lab --bootstrap-region-id RegionOne \
    --bootstrap-public-url http://127.0.0.1:5000/v3 --bootstrap-internal-url http://127.0.0.1:5000/v3
}
glance_schema() { glance-manage --config-file etc/glance/glance-api.conf db_sync; }
placement_schema() { placement-manage --config-file etc/placement/placement.conf db sync; }
nova_schema() {
  "${NOVA[@]}" api_db sync
  "${NOVA[@]}" cell_v2 map_cell0
  "${NOVA[@]}" cell_v2 list_cells | grep -q ' cell1 ' || "${NOVA[@]}" cell_v2 create_cell --name cell1
  "${NOVA[@]}" db sync
}
schema nova nova_schema & nova_schema_pid=$!
schema keystone keystone_schema || fail "the schema of keystone" keystone-schema
schema placement placement_schema || fail "the schema of placement" placement-schema
schema glance glance_schema || fail "the schema of glance" glance-schema
wait $nova_schema_pid || fail "the schema of nova" nova-schema
wait_for "answer from RabbitMQ" 90 rabbitmq port_taken 5672

say "keystone, glance, placement, nova-api"
for name in keystone placement glance nova-api neutron; do
  launch "$name"
done
wait_for "answer from Keystone" 60 keystone curl -sf http://127.0.0.1:5000/v3
/usr/bin/python3 "$HERE/content.py" endpoints
wait_for "answer from Placement" 60 placement curl -sf http://127.0.0.1:8778/
wait_for "answer from nova-api" 60 nova-api curl -sf http://127.0.0.1:8774/

say "nova-conductor, nova-scheduler, nova-compute"
launch nova-conductor
launch nova-scheduler
launch nova-compute

say "guest images and flavors"
wait $guest_pid || fail "building the guest" guest-build
wait_for "answer from Glance" 60 glance curl -s http://127.0.0.1:9292/
/usr/bin/python3 "$HERE/content.py" images

say "waiting for Nova's services to report (up to 120 s)"
/usr/bin/python3 "$HERE/content.py" wait-services || fail "Nova is not up" nova-compute
[ -e db/host.done ] || { "${NOVA[@]}" cell_v2 discover_hosts >log/discover-hosts.out 2>&1 && touch db/host.done; }
say "up: . $LAB/etc/admin.rc, or OS_CLIENT_CONFIG_FILE=$LAB/etc/clouds.yaml OS_CLOUD=lab-admin"
