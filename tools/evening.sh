#!/usr/bin/env bash
# evening.sh: an operator's first evening as docs/install.md describes it, with the packages of bin/release, on three machines
# that are fresh Debians in networks of their own, and deploy/ssh/machines.sh on four: deploy/evening_test.go. Needs root and a Debian mirror.
set -euo pipefail
skip() { echo "SKIPPED: the evening: $*" >&2; exit 0; }

if [ -z "${INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip 'it needs root'
	for tool in debootstrap caddy prometheus iptables; do
		tools/need.sh $tool $tool || skip "$tool cannot be installed"
	done
	EVENING=$(mktemp -d)
	export EVENING
	trap 'rm -rf "$EVENING"' EXIT
	deb=$(find bin/release -name "voxeld_*_$(dpkg --print-architecture).deb" | head -n 1)
	cp "$deb" "$EVENING/voxeld.deb"
	# The next version: the same sources under another name.
	dpkg-deb -R "$deb" "$EVENING/next"
	go build -trimpath -ldflags '-s -w -X main.buildVersion=next' -o "$EVENING/next/usr/bin/voxeld" ./cmd/voxeld
	sed -i 's/^Version: .*/&.1/' "$EVENING/next/DEBIAN/control"
	rm "$EVENING/next/DEBIAN/md5sums"
	dpkg-deb -Zgzip -z1 -b "$EVENING/next" "$EVENING/next.deb" >/dev/null
	tools/debian-root.sh "$EVENING/debian" || skip 'no Debian could be fetched'
	go test -c -o bin/evening.test ./deploy
	# What it mounts, listens on and starts ends with it.
	INSIDE=1 unshare --mount --net --pid --fork --kill-child --mount-proc "$0"
	exit
fi

ip link set lo up
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
cd deploy
../bin/evening.test -test.run '^Test(Evening|MachinesOverSSH)$' -test.v -evening "$EVENING"
