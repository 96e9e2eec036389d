#!/usr/bin/env bash
# debian-root.sh [DIR]: unpacks a small Debian into the new folder DIR. The first call fetches it from the mirror into bin/debian.tar.
set -euo pipefail
dir=${1:-} cache=bin/debian.tar
if [ ! -e $cache ]; then
	fresh=$(mktemp -d)
	chmod 755 "$fresh" # it becomes /
	trap 'rm -rf "$fresh"' EXIT
	debootstrap --variant=minbase --include=systemd-sysv,dbus bookworm "$fresh" >"$fresh.log" 2>&1 || { tail -n 3 "$fresh.log" >&2; rm -f "$fresh.log"; exit 1; }
	rm -rf "$fresh.log" "$fresh"/var/cache/apt/archives/*.deb "$fresh"/var/lib/apt/lists/*
	mkdir -p bin
	tar -C "$fresh" -cf $cache.part .
	mv $cache.part $cache
fi
[ -n "$dir" ] || exit 0
mkdir -p "$dir"
tar -C "$dir" -xf $cache
