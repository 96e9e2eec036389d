#!/usr/bin/env bash
# need.sh COMMAND PACKAGE: makes sure COMMAND is there; installs the Debian PACKAGE when it is missing and it may.
set -euo pipefail
command=$1 package=$2
command -v "$command" >/dev/null && exit 0
if ! command -v apt-get >/dev/null; then
	echo "$command is missing, and there is no apt-get here: install $command yourself and try again" >&2
	exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
	if ! sudo -n true 2>/dev/null; then
		echo "$command is missing: run 'sudo apt-get install $package' and try again" >&2
		exit 1
	fi
	as_root=(sudo -n)
fi
echo "$command is missing: installing the package $package"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A service that a package brings (prometheus) must not start on a developer's machine.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
	"${as_root[@]}" chmod +x $policy
	trap '"${as_root[@]}" rm -f $policy; rm -f "$log"' EXIT
fi
install() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 \
		install -y --no-install-recommends "$package" >"$log" 2>&1
}
if ! install; then
	"${as_root[@]}" apt-get update >/dev/null 2>&1 || true # a stale mirror is no reason to give up
	install || { tail -n 5 "$log" >&2; echo "cannot install $package: see above" >&2; exit 1; }
fi
command -v "$command" >/dev/null || { echo "$package is installed, but brings no $command" >&2; exit 1; }
