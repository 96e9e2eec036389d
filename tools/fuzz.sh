#!/usr/bin/env bash
# fuzz.sh TIME|Nx [PACKAGE…]: runs every fuzz target of the packages (default: all) for TIME each, or N executions in total, the same share
# each: fuzz.sh 60000000x. It prints one line per target with its executions, the sum at the end, and the whole output of a target that fails.
#
# Each package is built once, because `go test -fuzz` links again for each target. It runs as many targets at once as
# there are cores, each with one worker.
#
# Go's fuzzer now and then reports its own deadline as a failure ("context deadline exceeded", no failing input), because
# it does not wait long enough for the last worker. Such a run has found nothing and is repeated, at most twice.
#
# An input that reaches new code is made smaller with 300 executions at most. By default Go spends up to a minute on each, in which it
# tries nothing else: a target whose input has a kilobyte made three executions in 8 s.
set -euo pipefail
export FUZZ_TIME=$1 FUZZ_WORK
TOTAL=
case $1 in
*x) TOTAL=${1%x} ;;
esac
shift
[ $# -gt 0 ] || set -- ./...
FUZZ_WORK=$(mktemp -d)
trap 'rm -rf "$FUZZ_WORK"' EXIT
FUZZ_CACHE=$(go env GOCACHE)/fuzz
export FUZZ_CACHE

# fuzz NUMBER IMPORT-PATH DIRECTORY TARGET: runs one target of the built test $FUZZ_WORK/NUMBER.test.
fuzz() {
	local binary=$FUZZ_WORK/$1.test package=$2 target=$4 log=$FUZZ_WORK/$1.$4.log again execs
	cd "$3" # for testdata/fuzz
	for again in yes yes no; do
		if "$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$FUZZ_TIME" -test.fuzzminimizetime 300x \
			-test.parallel 1 -test.timeout 0 -test.fuzzcachedir "$FUZZ_CACHE/$package" >"$log" 2>&1; then
			break
		fi
		if [ $again = no ] || ! grep -qx ' *context deadline exceeded' "$log" || grep -q 'Failing input' "$log"; then
			cat "$log"
			echo "FAIL fuzz ${package##*/}.$target" >&2
			return 255 # xargs then starts no more targets
		fi
	done
	execs=$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$log" | tail -n 1)
	printf 'ok   fuzz %-50s %s executions\n' "${package##*/}.$target" "${execs:-0}"
	echo "${execs:-0}" >>"$FUZZ_WORK/executions"
}
export -f fuzz

number=0
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' "$@" >"$FUZZ_WORK/packages"
while read -r package dir; do
	targets=$(cat "$dir"/*_test.go | sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' | sort -u)
	[ -n "$targets" ] || continue
	number=$((number + 1))
	go test -c -fuzz . -o "$FUZZ_WORK/$number.test" "$package"
	for target in $targets; do echo "$number $package $dir $target"; done >>"$FUZZ_WORK/targets"
done <"$FUZZ_WORK/packages"
touch "$FUZZ_WORK/targets" "$FUZZ_WORK/executions"
targets=$(wc -l <"$FUZZ_WORK/targets")
if [ -n "$TOTAL" ] && [ "$targets" -gt 0 ]; then
	FUZZ_TIME=$(((TOTAL + targets - 1) / targets))x
fi
xargs -r -P "$(nproc)" -L 1 bash -euo pipefail -c 'fuzz "$@"' fuzz <"$FUZZ_WORK/targets"
echo "fuzz: $targets targets passed, $FUZZ_TIME each, $(awk '{ n += $1 } END { print n + 0 }' "$FUZZ_WORK/executions") executions"
