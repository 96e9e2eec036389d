#!/usr/bin/env bash
# again.sh COMMAND…: runs a command, and once more when it fails; says so aloud, for a test that fails now and then is a bug.
#
# For steps that start real daemons and browsers beside one another (docs/adr/0014). Of `go test ./...` the second run
# does again only what failed: what passed comes from Go's test cache.
set -uo pipefail
"$@" && exit 0
code=$?
echo "FLAKY? '$*' ended with $code: once more" >&2
"$@" || exit
echo "FLAKY: '$*' passed the second time; what failed above is a bug, in the test or in what it tests" >&2
