#!/usr/bin/env bash
# fuzz.sh TIME [PACKAGE…]: runs every fuzz target of the packages (default: all) for TIME each.
# One line per target; the whole output of a target that fails.
#
# Go's fuzzer now and then reports its own deadline as a failure ("context deadline exceeded", no failing input): the
# last worker is waited for a moment too short. Such a run has found nothing and is done again, twice at most.
set -euo pipefail
time=$1
shift
[ $# -gt 0 ] || set -- ./...
log=$(mktemp)
trap 'rm -f "$log"' EXIT
targets=0
for package in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' "$@"); do
	for target in $(cat "$package"/*_test.go | sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' | sort -u); do
		for again in yes yes no; do
			if go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10s "$package" >"$log" 2>&1; then
				break
			fi
			if [ $again = no ] || ! grep -qx ' *context deadline exceeded' "$log" || grep -q 'Failing input' "$log"; then
				cat "$log"
				echo "FAIL fuzz ${package##*/}.$target" >&2
				exit 1
			fi
		done
		execs=$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$log" | tail -n 1)
		printf 'ok   fuzz %-50s %s executions\n' "${package##*/}.$target" "${execs:-0}"
		targets=$((targets + 1))
	done
done
echo "fuzz: $targets targets passed, $time each"
