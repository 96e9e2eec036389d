#!/usr/bin/env bash
# need.sh COMMAND PACKAGE: installs the Debian PACKAGE if COMMAND is missing and it may install packages.
set -euo pipefail
command=$1 package=$2
command -v "$command" >/dev/null && exit 0
if ! command -v apt-get >/dev/null; then
	echo "$command is missing, and apt-get is not available: install $command yourself and try again" >&2
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
# A service in a package (prometheus) must not start on a developer's machine.
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
# A machine's lists may be old: what they name is gone, or too old for the tests (a Firefox that Playwright cannot drive).
updated=${TMPDIR:-/tmp}/voxeld-apt-updated
if [ -z "$(find "$updated" -mtime -1 2>/dev/null)" ]; then
	"${as_root[@]}" apt-get -o DPkg::Lock::Timeout=120 update >/dev/null 2>&1 && touch "$updated" || true # try anyway
fi
install || { tail -n 5 "$log" >&2; echo "cannot install $package: see above" >&2; exit 1; }
command -v "$command" >/dev/null || { echo "$package is installed, but does not contain $command" >&2; exit 1; }
