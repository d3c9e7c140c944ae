#!/bin/bash
# Ends all that up.sh started, by pid, after deleting every server. Keeps $HVSVC_LAB for a quick next start;
# with --purge it goes too. A libvirtd that the lab found running stays.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ -d "$LAB/run" ] || { say "nothing is there: $LAB"; exit 0; }
exec 9>"$LAB/run/lock"
flock -w 600 9 || die "another up.sh or down.sh holds $LAB/run/lock"
cd "$LAB"

if alive nova-api && alive nova-compute && alive keystone; then
  say "deleting servers (up to 60 s)"
  (. etc/admin.rc && timeout 90 /usr/bin/python3 "$HERE/content.py" delete-servers) ||
    say "Nova did not delete them all"
fi
stop nova-compute nova-scheduler nova-conductor
stop nova-api neutron placement glance keystone
stop rabbitmq epmd mariadb

# What Nova could not delete: any domain whose files are ours.
for domain in $(timeout 20 virsh -c qemu:///system list --all --uuid 2>/dev/null || true); do
  virsh -c qemu:///system dumpxml "$domain" 2>/dev/null | grep -qF "$LAB/state/nova/instances/" || continue
  say "removing domain $domain"
  virsh -q -c qemu:///system destroy "$domain" 2>/dev/null || true
  virsh -q -c qemu:///system undefine --managed-save --nvram "$domain"
  rm -rf "$LAB/state/nova/instances/$domain"
done
stop libvirtd virtlogd
say "down"
[ "${1:-}" != --purge ] || rm -rf "$LAB"
