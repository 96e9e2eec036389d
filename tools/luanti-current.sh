#!/usr/bin/env bash
# luanti-current.sh: the test with Debian's client of Luanti, with that of the suite testing. The client and its
# libraries are unpacked into a folder, which is its root: nothing is installed. Needs root and a Debian mirror.
set -euo pipefail
skip() { echo "SKIPPED: the current client of Luanti: $*" >&2; exit 0; }

if [ -z "${INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip 'it needs root'
	tools/need.sh Xvfb xvfb || skip 'Xvfb cannot be installed'
	CLIENT=$(mktemp -d)
	export CLIENT
	trap 'rm -rf "$CLIENT"' EXIT
	mkdir -p "$CLIENT"/{lists,archives}/partial "$CLIENT"/root/{dev,proc,tmp,usr/lib,usr/lib64}
	touch "$CLIENT/status"
	echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian testing main' >"$CLIENT/sources"
	apt=(apt-get -qq -o APT::Sandbox::User=root -o "Dir::State::lists=$CLIENT/lists" -o "Dir::State::status=$CLIENT/status"
		-o "Dir::Cache=$CLIENT" -o "Dir::Etc::sourcelist=$CLIENT/sources" -o Dir::Etc::sourceparts=-)
	"${apt[@]}" update && "${apt[@]}" install --no-install-recommends --download-only -y luanti >/dev/null || skip 'it cannot be fetched'
	ln -s usr/lib "$CLIENT/root/lib"
	ln -s usr/lib64 "$CLIENT/root/lib64"
	for package in "$CLIENT"/archives/*.deb; do dpkg-deb -x "$package" "$CLIENT/root"; done
	printf '#!/bin/sh\nexec chroot %s/root /usr/libexec/luanti/luanti "$@"\n' "$CLIENT" >"$CLIENT/luanti"
	chmod +x "$CLIENT/luanti"
	INSIDE=1 unshare --mount "$0" # what it mounts ends with it
	exit
fi

mount --bind /tmp "$CLIENT/root/tmp"
mount --rbind /dev "$CLIENT/root/dev"
mount -t proc proc "$CLIENT/root/proc"
"$CLIENT/luanti" --version
TMPDIR=/tmp go test ./cmd/voxeld -run '^TestLuantiClientOfDebian$' -count 1 -v -timeout 5m -luanti.client="$CLIENT/luanti"
