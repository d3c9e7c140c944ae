#!/bin/bash
# build.sh OUTDIR: puts vmlinuz and initrd.img of the small test guest into OUTDIR.
#
# The guest is the distribution's cloud kernel, busybox and qemu-ga, taken out of packages that are downloaded but never
# installed: no root, nothing outside OUTDIR and the cache. The result is kept in $HVSVC_GUEST_CACHE (default: .cache/guest
# in the tree) under a key made of the package versions and of the files in this folder.
set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C

out=$(realpath -m "${1:?usage: build.sh OUTDIR}")
here=$(cd "$(dirname "$0")" && pwd)
cache=$(realpath -m "${HVSVC_GUEST_CACHE:-$here/../../.cache/guest}")
# Those that the guest uses; what they depend on is found, and what the kernel has built in is left out.
modules="virtio_pci virtio_balloon virtio_blk virtio_console evdev button"

say() { echo "guest: $*" >&2; }
die() { say "$*"; exit 1; }

kernel=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image/{print $2; exit}')
[[ -n $kernel ]] || die "apt knows no linux-image-cloud-amd64: run 'apt-get update' (or 'make deps') first"
packages="$kernel busybox-static qemu-guest-agent"
key=$({ apt-cache policy $packages | grep -E '^[^ ]|Candidate:'; cat "$here"/{build.sh,init,shutdown}; } | sha256sum | cut -c1-16)

mkdir -p "$cache" "$out"
exec 9>"$cache/lock"
flock 9
if [[ ! -e $cache/$key/initrd.img ]]; then
  work=$(mktemp -d "$cache/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  x=$work/x root=$work/root
  mkdir -p "$x" "$work/deb" "$work/made" "$root"/{bin,sbin,mod,etc,lib,lib64}

  say "downloading $packages"
  (cd "$work/deb" && apt-get download -q $packages >"$work/apt.log" 2>&1) || { cat "$work/apt.log" >&2; die "apt-get download failed"; }
  for deb in "$work"/deb/*.deb; do dpkg -x "$deb" "$x"; done

  cp "$x"/boot/vmlinuz-* "$work/made/vmlinuz"
  cp "$(find "$x" -path '*bin/busybox' -type f)" "$root/bin/busybox"
  cp "$(find "$x" -path '*bin/qemu-ga' -type f)" "$root/bin/qemu-ga"
  install -m755 "$here/init" "$root/init"
  install -m755 "$here/shutdown" "$root/sbin/shutdown"
  echo root:x:0:0:root:/:/bin/sh >"$root/etc/passwd"

  libraries=$(ldd "$root/bin/qemu-ga")
  ! grep 'not found' <<<"$libraries" >&2 || die "qemu-ga needs the libraries above: install them"
  for library in $(grep -o '/lib[^ ]*\|/usr/lib[^ ]*' <<<"$libraries"); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done

  # Newer kernel packages ship /usr/lib/modules, and some compress the modules.
  [[ -d $x/lib/modules ]] || ln -s usr/lib "$x/lib"
  release=$(basename "$x"/lib/modules/*)
  depmod -b "$x" "$release"
  for module in $modules; do
    modprobe -d "$x" -S "$release" -C /dev/null --show-depends "$module" || die "no module $module in $kernel"
  done | awk '$1 == "insmod" && !seen[$2]++ {print $2}' >"$work/files"
  while read -r file; do
    name=$(basename "$file") && name=${name%%.ko*}
    case $file in
      *.ko) cp "$file" "$root/mod/$name.ko" ;;
      *.ko.xz) xz -dc "$file" >"$root/mod/$name.ko" ;;
      *.ko.zst) zstd -qdc "$file" >"$root/mod/$name.ko" ;;
      *) die "unknown kind of module: $file" ;;
    esac
    echo "$name" >>"$root/mod/order"
  done <"$work/files"

  (cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc --quiet --owner 0:0 | gzip -1n) >"$work/made/initrd.img"
  rm -rf "${cache:?}/$key"
  mv "$work/made" "$cache/$key"
  say "built for Linux $release"
fi
cp -f "$cache/$key"/{vmlinuz,initrd.img} "$out"
