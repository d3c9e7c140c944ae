#!/bin/bash
# Installs the Debian packages of the lab (12 and 13), without letting one of them start its service.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mkdir -p "$LAB/log"
PACKAGES=(nova-api nova-conductor nova-scheduler nova-compute nova-compute-kvm keystone placement-api glance-api
  rabbitmq-server mariadb-server uwsgi-core uwsgi-plugin-python3 python3-openstackclient python3-osc-placement
  python3-libvirt libvirt-daemon-system libvirt-clients qemu-system-x86 qemu-utils curl iproute2
  cpio kmod xz-utils) # the last three: to build the guest

missing=()
for package in "${PACKAGES[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
say "installing ${#missing[@]} packages and what they need (log: $LAB/log/apt.out)"

# policy-rc.d answers "may the package start its service?"; 101 is no. Put back as found, however this ends.
policy=/usr/sbin/policy-rc.d
[ ! -e "$policy" ] || cp -a "$policy" "$policy.hvsvc-lab"
restore() {
  rm -f "$policy"
  [ ! -e "$policy.hvsvc-lab" ] || mv "$policy.hvsvc-lab" "$policy"
}
trap restore EXIT
printf '#!/bin/sh\nexit 101\n' >"$policy.new"
chmod 755 "$policy.new"
mv "$policy.new" "$policy"

export DEBIAN_FRONTEND=noninteractive
apt_get() { timeout 900 apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >>"$LAB/log/apt.out" 2>&1; }
apt_get update -q && apt_get install -y -q --no-install-recommends "${missing[@]}" || {
  tail -n 15 "$LAB/log/apt.out" >&2
  die "apt-get failed"
}
say "packages installed"
