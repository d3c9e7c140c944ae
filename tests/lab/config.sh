#!/bin/bash
# Writes every configuration file of the lab into $LAB/etc. The password is "lab"; all listens on 127.0.0.1 only.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mkdir -p "$LAB"/etc/{keystone,glance,placement,nova}
cd "$LAB/etc"

database() { echo "mysql+pymysql://root@localhost/$1?charset=utf8&unix_socket=$LAB/run/mysql.sock"; }
paste() { # paste PROJECT FILE: Debian 12 keeps it in /etc/PROJECT, Debian 13 partly below /usr
  local found
  found=$(find "/etc/$1" /usr/share/"$1"* /usr/etc/"$1" -name "$2" 2>/dev/null | head -n 1 || true)
  [ -n "$found" ] || die "no $2 in the packages of $1"
  cp "$found" "$1/$2"
}
credentials() { cat <<A
auth_url = http://127.0.0.1:5000/v3
auth_type = password
username = admin
password = lab
project_name = admin
user_domain_name = Default
project_domain_name = Default
region_name = RegionOne
A
}
# authtoken TYPE: without the service's type a token of an application credential with access rules is refused
authtoken() { printf '[keystone_authtoken]\nwww_authenticate_uri = http://127.0.0.1:5000\nservice_type = %s\n' "$1"; credentials; }

cat >keystone/keystone.conf <<A
[DEFAULT]
log_dir = $LAB/log
[database]
connection = $(database keystone)
[token]
provider = fernet
expiration = 86400
[fernet_tokens]
key_repository = $LAB/db/fernet
[credential]
key_repository = $LAB/db/credential
A

cat >placement/placement.conf <<A
[DEFAULT]
log_dir = $LAB/log
[api]
auth_strategy = keystone
[placement_database]
connection = $(database placement)
$(authtoken placement)
A

paste glance glance-api-paste.ini
cat >glance/glance-api.conf <<A
[DEFAULT]
log_dir = $LAB/log
enabled_backends = file:file
[database]
connection = $(database glance)
[paste_deploy]
flavor = keystone
config_file = $LAB/etc/glance/glance-api-paste.ini
[glance_store]
default_backend = file
[file]
filesystem_store_datadir = $LAB/state/glance
[os_glance_staging_store]
filesystem_store_datadir = $LAB/state/staging
[os_glance_tasks_store]
filesystem_store_datadir = $LAB/state/tasks
$(authtoken image)
A

paste nova api-paste.ini
cat >nova/nova.conf <<A
[DEFAULT]
debug = true
log_dir = $LAB/log
state_path = $LAB/state/nova
host = hvsvc-lab
my_ip = 127.0.0.1
transport_url = rabbit://guest:guest@127.0.0.1:5672/
compute_driver = libvirt.LibvirtDriver
allow_resize_to_same_host = true
# Nova's default is 600; the sync is what stops a domain that was rebooted behind Nova's back
sync_power_state_interval = 20
# 60: how long a clean shutdown may take in stop and in a hard reboot
shutdown_timeout = 20
cpu_allocation_ratio = 16
ram_allocation_ratio = 1.5
[oslo_policy]
policy_file = $LAB/etc/nova/policy.yaml
[api]
auth_strategy = keystone
[wsgi]
api_paste_config = $LAB/etc/nova/api-paste.ini
[api_database]
connection = $(database nova_api)
[database]
connection = $(database nova)
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 10
[libvirt]
virt_type = qemu
cpu_mode = none
# 120: after this a soft reboot falls back to a hard one
wait_soft_reboot_seconds = 30
inject_partition = -2
[vnc]
enabled = false
[oslo_concurrency]
lock_path = $LAB/state/nova/lock
$(for peer in placement glance neutron cinder; do echo "[$peer]"; credentials; done)
$(authtoken compute)
$(for context in nova_sys_admin vif_plug_ovs_privileged vif_plug_linux_bridge_privileged privsep_osbrick; do
  printf '[%s]\nhelper_command = privsep-helper --config-file %s/nova/nova.conf\n' "$context" "$LAB/etc"
done)
A

# what operators are told to put there; it is about the role hvsvc alone
awk '/^```policy/ { on = 1; next } /^```/ { on = 0 } on' "$HERE/../../docs/credentials.md" >nova/policy.yaml

cat >clouds.yaml <<A
clouds:
$(for user in admin demo; do cat <<B
  lab-$user:
    region_name: RegionOne
    identity_api_version: "3"
    auth:
      auth_url: http://127.0.0.1:5000/v3
      username: $user
      password: lab
      project_name: $user
      user_domain_name: Default
      project_domain_name: Default
B
done)
A

for user in admin demo; do cat >$user.rc <<A
export OS_AUTH_URL=http://127.0.0.1:5000/v3 OS_IDENTITY_API_VERSION=3 OS_REGION_NAME=RegionOne
export OS_USERNAME=$user OS_PASSWORD=lab OS_PROJECT_NAME=$user
export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default
export OS_COMPUTE_API_VERSION=2.90 OS_PLACEMENT_API_VERSION=1.29
A
done
