#!/usr/bin/env bash
# package-check.sh: installs the .deb of bin/release in a fresh Debian, runs the node as its unit does, upgrades, removes and
# purges it. systemd does not run in a chroot: a stand-in notes what the package asks of it.
# Needs root, debootstrap and a Debian mirror; without root or a mirror it says that it is skipped.
set -euo pipefail
fail() { echo "package-check: $*" >&2; exit 1; }
skip() { echo "SKIPPED: package-check: $*" >&2; exit 0; }

if [ -z "${INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip 'it needs root'
	tools/need.sh debootstrap debootstrap
	# What it mounts, listens on and starts ends with it.
	INSIDE=1 exec unshare --mount --net --pid --fork --kill-child "$0"
fi
ip link set lo up

arch=$(dpkg --print-architecture)
deb=$(find bin/release -name "voxeld_*_$arch.deb" 2>/dev/null | head -n 1)
[ -n "$deb" ] || fail 'there is no package: run make release'

work=$(mktemp -d)
root=$work/root
trap 'umount -q "$root/proc" || true; rm -rf "$work"' EXIT
tools/debian-root.sh "$root" || skip 'no Debian could be fetched'
mount -t proc proc "$root/proc"

inside() { chroot "$root" "$@"; }
step() { echo "== $*"; }
asked() { # asked WORDS: whether the package called systemctl so
	grep -qxF -e "$*" "$root/run/systemctl" || { cat "$root/run/systemctl" >&2; fail "systemctl $* was not called"; }
}

# A later version of the same package, with another sample configuration.
dpkg-deb -R "$deb" "$work/next"
sed -i 's/^Version: .*/&.1/' "$work/next/DEBIAN/control"
echo '# a new line in the sample' >>"$work/next/etc/voxeld/voxeld.toml"
(cd "$work/next" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb -b "$work/next" "$work/next.deb" >/dev/null
cp "$deb" "$root/voxeld.deb"
cp "$work/next.deb" "$root/"

mkdir -p "$root/run/systemd/system"
cp deploy/testdata/systemctl "$root/usr/bin/"

step 'install'
inside dpkg -i /voxeld.deb >"$work/log" 2>&1 || { cat "$work/log" >&2; fail 'dpkg -i failed'; }
grep -q 'does not run yet' "$work/log" || fail 'the package does not say what to do next'
asked daemon-reload
! grep -qE '^(enable|start|restart)' "$root/run/systemctl" || fail 'the package started the node by itself'
[ "$(inside stat -c %U:%G:%a /var/lib/voxeld)" = voxeld:voxeld:750 ] || fail 'the state directory is not of the user voxeld'
inside dpkg-query -W -f '${Conffiles}' voxeld | grep -q /etc/voxeld/voxeld.toml || fail 'the configuration is not a conffile'
inside dpkg --verify voxeld | grep . && fail 'files differ from the package'
for file in /lib/systemd/system/voxeld.service /usr/share/man/man1/voxeld-run.1.gz /usr/share/bash-completion/completions/voxeld; do
	[ -s "$root$file" ] || fail "$file is missing"
done
inside voxeld --version

serves() {
	for _ in $(seq 300); do
		inside voxeld healthcheck >/dev/null 2>&1 && return
		sleep 0.1
	done
	tail -n 20 "$root/var/log/voxeld.log" >&2
	fail 'the node does not serve'
}
world() { inside voxeld status --json | sed -n 's/.*"world_id": "\(.*\)".*/\1/p'; }

step 'run'
echo 'guests = false # mine' >>"$root/etc/voxeld/voxeld.toml"
inside systemctl enable --now voxeld
serves
founded=$(world)
[ -n "$founded" ] || fail 'voxeld status needs flags on a packaged machine'
inside adduser --quiet --disabled-password --gecos '' ann
! chroot --userspec=ann "$root" voxeld status >/dev/null 2>&1 || fail 'anybody may use the commands'
inside adduser --quiet ann voxeld
chroot --userspec=ann --groups=voxeld "$root" voxeld status >/dev/null || fail 'the group voxeld may not use the commands'
before=$(cat "$root/run/voxeld.pid")

step 'upgrade'
inside dpkg --force-confdef --force-confold -i /next.deb >"$work/log" 2>&1 || { cat "$work/log" >&2; fail 'the upgrade failed'; }
asked try-restart voxeld.service
! grep -q '^--no-reload disable' "$root/run/systemctl" || fail 'an upgrade disabled the node'
grep -q '# mine' "$root/etc/voxeld/voxeld.toml" || fail 'the upgrade overwrote the configuration'
[ "$(cat "$root/run/voxeld.pid")" != "$before" ] || fail 'the upgrade did not restart the node'
serves
[ "$(world)" = "$founded" ] || fail 'another world after the upgrade'

step 'remove and purge'
inside dpkg -r voxeld >"$work/log" 2>&1 || { cat "$work/log" >&2; fail 'removing it failed'; }
asked --no-reload disable --now voxeld.service
! inside pidof voxeld >/dev/null || fail 'removing it left the node running'
[ -e "$root/etc/voxeld/voxeld.toml" ] && [ -e "$root/var/lib/voxeld/voxeld.db" ] || fail 'removing it took the configuration or the world'
inside dpkg -P voxeld >"$work/log" 2>&1
[ ! -e "$root/etc/voxeld" ] || fail 'purging it left the configuration'
[ -e "$root/var/lib/voxeld/voxeld.db" ] || fail 'purging it deleted the world'
grep -q 'was kept' "$work/log" || fail 'purging it does not mention the world'
echo '== the package installs, runs, upgrades and goes'
