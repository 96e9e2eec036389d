#!/usr/bin/env bash
# release-check.sh [GORELEASER FLAGS]: builds the release of HEAD in two clones at different paths, and compares every file.
set -euo pipefail
flags=("$@")
[ -z "$(git status --porcelain)" ] || { echo 'commit your changes first: this builds HEAD' >&2; exit 1; }
commit=$(git rev-parse HEAD)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for clone in "$dir/one" "$dir/another/path"; do
	git clone --quiet --no-hardlinks . "$clone"
	git -C "$clone" checkout --quiet "$commit"
	make --silent -C "$clone" release RELEASE_ARGS="${flags[*]}" >"$dir/log" 2>&1 || { tail -n 20 "$dir/log" >&2; exit 1; }
done
if ! diff "$dir/one/bin/release/SHA256SUMS" "$dir/another/path/bin/release/SHA256SUMS"; then
	echo 'two builds of the same commit differ' >&2
	exit 1
fi
(cd "$dir/one/bin/release" && sha256sum --quiet --check SHA256SUMS)
cat "$dir/one/bin/release/SHA256SUMS"
echo '== two builds are equal'
