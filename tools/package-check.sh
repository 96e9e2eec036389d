#!/usr/bin/env bash
# package-check.sh: installs the .deb of bin/release in a fresh Debian whose systemd runs in a container (systemd-nspawn), starts
# the node, reloads, kills, upgrades, removes and purges it, and looks at what the unit lets it do.
# Needs root, debootstrap and a Debian mirror; where it cannot run it says that it is skipped.
set -euo pipefail
fail() { echo "package-check: $*" >&2; exit 1; }
skip() { echo "SKIPPED: package-check: $*" >&2; exit 0; }

if [ -z "${INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip 'it needs root'
	tools/need.sh debootstrap debootstrap
	tools/need.sh systemd-nspawn systemd-container || skip 'there is no systemd-nspawn'
	tools/debian-root.sh || skip 'no Debian could be fetched'
	# What it mounts, listens on and starts ends with it.
	INSIDE=1 exec unshare --mount --net --pid --fork --kill-child --mount-proc "$0"
fi
ip link set lo up

arch=$(dpkg --print-architecture)
deb=$(find bin/release -name "voxeld_*_$arch.deb" 2>/dev/null | head -n 1)
[ -n "$deb" ] || fail 'there is no package: run make release'

work=$(mktemp -d)
root=$work/root
trap 'rm -rf "$work"' EXIT
tools/debian-root.sh "$root"

inside() { nsenter --target "$init" --mount --uts --ipc --net --pid --cgroup -- "$@"; }
step() { echo "== $*"; }
# A later version of the same package, with another sample configuration. The upgrade has no terminal and must not ask.
dpkg-deb -R "$deb" "$work/next"
sed -i 's/^Version: .*/&.1/' "$work/next/DEBIAN/control"
echo '# a new line in the sample' >>"$work/next/usr/share/doc/voxeld/voxeld.toml"
(cd "$work/next" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb -Zgzip -z1 -b "$work/next" "$work/next.deb" >/dev/null
cp "$deb" "$root/voxeld.deb"
cp "$work/next.deb" "$root/"

step 'boot'
systemd-nspawn --quiet --directory="$root" --machine=voxeld-check --boot --register=no --keep-unit --private-network --console=pipe \
	systemd.unit=multi-user.target </dev/null >"$work/boot" 2>&1 &
nspawn=$!
init= state=
for _ in $(seq 300); do
	kill -0 $nspawn 2>/dev/null || skip "systemd does not boot in a container here: $(tail -n 1 "$work/boot")"
	init=$(pgrep -P $nspawn || true)
	state=$([ -z "$init" ] || inside systemctl is-system-running 2>/dev/null || true)
	case "$state" in running | degraded) break ;; esac
	sleep 0.2
done
case "$state" in running | degraded) ;; *) skip "systemd does not boot in a container here ($state): $(inside systemctl list-jobs --no-legend | tr -s ' \n' ' ')" ;; esac

unit() { inside systemctl show --property "$1" --value voxeld; }
config=$root/etc/voxeld/voxeld.toml
refused() { # refused WHAT COMMAND…: the command must fail
	local what=$1
	shift
	! "$@" >"$work/log" 2>&1 || fail "$what"
}

step 'install'
inside dpkg -i /voxeld.deb >"$work/log" 2>&1 || { cat "$work/log" >&2; fail 'dpkg -i failed'; }
grep -q 'does not run yet' "$work/log" || fail 'the package does not say what to do next'
[ "$(unit LoadState) $(unit ActiveState) $(unit UnitFileState)" = 'loaded inactive disabled' ] || fail 'the package started the node by itself'
[ "$(inside stat -c %U:%G:%a /var/lib/voxeld)" = voxeld:voxeld:750 ] || fail 'the state directory is not of the user voxeld'
inside dpkg-query -W -f '${Conffiles}' voxeld | grep -q /etc/voxeld/voxeld.toml || fail 'the configuration is not a conffile'
inside dpkg --verify voxeld | grep . && fail 'files differ from the package'
for file in /lib/systemd/system/voxeld.service /usr/share/man/man1/voxeld-run.1.gz /usr/share/bash-completion/completions/voxeld; do
	[ -s "$root$file" ] || fail "$file is missing"
done
inside systemd-analyze verify voxeld.service 2>&1 | grep -i voxeld && fail 'the unit has errors'
inside systemd-analyze security --no-pager --threshold=20 voxeld >"$work/log" || { tail -n 1 "$work/log" >&2; fail 'the unit lets the node do too much'; }
tail -n 1 "$work/log"
inside voxeld --version

serves() { inside voxeld healthcheck >/dev/null || { inside journalctl -u voxeld -n 20 --no-pager >&2; fail 'the node does not serve'; }; }
world() { inside voxeld status --json | sed -n 's/.*"world_id": "\(.*\)".*/\1/p'; }

step 'run'
inside voxeld init --name Checked >/dev/null # as root; the node runs as voxeld
echo 'guests = false # mine' >>"$config"
inside systemctl enable --quiet --now voxeld
serves # at once: systemctl waits until it does
founded=$(world)
[ -n "$founded" ] || fail 'voxeld status needs flags on a packaged machine'
inside adduser --quiet --disabled-password --gecos '' ann
inside bash -c 'exec 3<>/dev/tcp/127.0.0.1/9102 && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3' | grep '^voxeld_start_time_seconds ' >/dev/null ||
	fail 'no metric says when the node started'
refused 'anybody may use the commands' inside runuser -u ann -- voxeld status
inside adduser --quiet ann voxeld
inside runuser -u ann -- voxeld status >/dev/null || fail 'the group voxeld may not use the commands'

step 'sandbox'
before=$(unit MainPID)
asnode() { inside nsenter --target "$before" --mount setpriv --reuid voxeld --regid voxeld --clear-groups "$@"; }
refused 'the node can write outside its data directory' inside nsenter --target "$before" --mount touch /etc/voxeld/x
asnode touch /var/lib/voxeld/x && rm "$root/var/lib/voxeld/x"
[ -z "$(inside grep -E '^Cap(Eff|Bnd|Amb):' "/proc/$before/status" | grep -v ':.0*$')" ] || fail 'the node has capabilities'
# What docs/backup.md and docs/https.md say to permit.
install -d -o "$(stat -c %u "$root/var/lib/voxeld")" "$root/mnt/backups"
refused 'the node can write to /mnt' asnode touch /mnt/backups/x
mkdir -p "$root/etc/systemd/system/voxeld.service.d"
printf '[Service]\nReadWritePaths=/mnt/backups\nAmbientCapabilities=CAP_NET_BIND_SERVICE\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\nPrivateUsers=no\n' \
	>"$root/etc/systemd/system/voxeld.service.d/override.conf"
cp "$config" "$work/config"
printf 'http = ":80"\nbackup_dir = "/mnt/backups"\n' >>"$config"
refused 'the node listens on port 80 without the capability' inside systemctl restart voxeld
inside systemctl daemon-reload
inside systemctl restart voxeld
serves
before=$(unit MainPID)
asnode touch /mnt/backups/x
rm -r "$root/etc/systemd/system/voxeld.service.d"
cp "$work/config" "$config"
inside systemctl daemon-reload
inside systemctl restart voxeld

step 'reload and failures'
echo 'sessions_per_address = 8' >>"$config"
inside systemctl reload voxeld
inside journalctl -u voxeld -n 5 -o cat --no-pager | grep -q sessions_per_address || fail 'a reload does not name what it changed'
echo 'sessions_per_address = "x"' >>"$config"
refused 'a reload of a wrong configuration succeeds' inside systemctl reload voxeld
[ "$(unit ActiveState)" = active ] || fail 'a reload of a wrong configuration stops the node'
refused 'a start with a wrong configuration succeeds' inside systemctl restart voxeld
[ "$(unit NRestarts) $(unit ActiveState) $(unit ExecMainStatus)" = '0 failed 2' ] || fail 'systemd starts a node with a wrong configuration again and again'
cp "$work/config" "$config"
inside systemctl start voxeld
inside systemctl kill --signal KILL voxeld
inside voxeld status --wait healthy --timeout 1m >/dev/null || fail 'a killed node does not start again'
[ "$(unit NRestarts)" = 1 ] || fail 'systemd did not start the killed node again'

step 'upgrade'
before=$(unit MainPID)
inside dpkg -i /next.deb </dev/null >"$work/log" 2>&1 || { cat "$work/log" >&2; fail 'the upgrade failed'; }
serves
[ "$(unit UnitFileState)" = enabled ] || fail 'an upgrade disabled the node'
grep -q '# mine' "$config" || fail 'the upgrade overwrote the configuration'
[ "$(unit MainPID)" != "$before" ] || fail 'the upgrade did not restart the node'
[ "$(world)" = "$founded" ] || fail 'another world after the upgrade'

step 'remove and purge'
inside dpkg -r voxeld >"$work/log" 2>&1 || { cat "$work/log" >&2; fail 'removing it failed'; }
! inside pidof voxeld >/dev/null || fail 'removing it left the node running'
[ ! -e "$root/etc/systemd/system/multi-user.target.wants/voxeld.service" ] || fail 'removing it left the unit enabled'
[ -e "$config" ] && [ -e "$root/var/lib/voxeld/voxeld.db" ] || fail 'removing it took the configuration or the world'
inside dpkg -P voxeld >"$work/log" 2>&1
[ ! -e "$root/etc/voxeld" ] || fail 'purging it left the configuration'
[ -e "$root/var/lib/voxeld/voxeld.db" ] || fail 'purging it deleted the world'
grep -q 'was kept' "$work/log" || fail 'purging it does not mention the world'
echo '== the package installs, runs, upgrades and goes'
