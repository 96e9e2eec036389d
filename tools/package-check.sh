#!/usr/bin/env bash
# package-check.sh: installs the .deb of bin/release in a fresh Debian, runs the node as its unit does, upgrades, removes and
# purges it. systemd does not run in a chroot: a stand-in records what the package asks of it.
# Needs root, debootstrap, and a Debian mirror. Skips plainly without them.
set -euo pipefail
skip() { echo "SKIPPED: package-check: $*" >&2; exit 0; }
fail() { echo "package-check: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || skip 'it needs root for chroot'
[ -n "${INSIDE:-}" ] || INSIDE=1 exec unshare --mount --net --kill-child --pid --fork "$0" # its ports and mounts end with it

arch=$(dpkg --print-architecture)
deb=$(ls -t bin/release/voxeld_*_"$arch".deb 2>/dev/null | head -n 1) || true
[ -n "$deb" ] || fail 'there is no package: run make release'

root=$(mktemp -d)
trap 'umount -q "$root/proc" || true; rm -rf "$root"' EXIT
