#!/usr/bin/env bash
# again.sh COMMAND…: runs a command, and a second time if it fails. It reports every failure, because a flaky test is a bug.
#
# For steps that run real daemons and browsers concurrently (docs/adr/0014). With `go test ./...` the second run repeats
# only the packages that failed: the others come from Go's test cache.
set -uo pipefail
"$@" && exit 0
code=$?
echo "FLAKY? '$*' failed with exit code $code: trying once more" >&2
"$@" || exit
echo "FLAKY: '$*' passed the second time; the failure above is a bug in the test or in the code under test" >&2
