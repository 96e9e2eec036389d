#!/usr/bin/env bash
# mutants.sh [-s] [NAME…]: checks that the tests of packages replica and store detect known bugs, one for each pitfall of
# the libraries. Each bug is switched on by name (mutate_on.go), and the test in its row must then fail. Without names it
# runs all of them, after a run in which these tests must pass without any bug.
# -s: the simulation must detect the bug, if the third column says "notices". It prints the virtual minutes that took.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=${CGO_ENABLED:-0}

# package, name, test that detects the bug, whether the simulation does (docs/simulation.md explains why not)
mutants='
replica acknowledge-before-fsync  TestCommittedAfterFsync        notices
replica send-before-fsync         TestNoWordBeforeFsync          notices
replica forget-vote               TestVoteSurvivesCrash          notices
replica forget-applied-index      TestReopenDeliversFromApplied  notices
replica applied-apart             TestAppliedIsOneCommit         notices
replica compact-ahead             TestCompaction                 notices
replica accept-strangers          TestHostileFrames              cannot
replica believe-heartbeats        TestGateRefuses                cannot
replica gate-by-committed-only    TestGateHearsPendingMembers    cannot
replica reuse-replica-ids         TestReplicaIDsAreUsedOnce      notices
replica skip-tombstones           TestTombstones                 notices
replica forget-configuration      TestChangesSurviveRestart      notices
replica configuration-ahead       TestChangesSurviveRestart      notices
replica snapshot-keeps-old-rows   TestSnapshotCatchesUp          notices
replica snapshot-in-two-commits   TestSnapshotIsOneCommit        notices
replica untold-snapshots          TestSnapshotFails              notices
replica view-while-sending        TestSnapshotHoldsNoView        cannot
replica apply-across-restore      TestAppliedAcrossRestore       notices
replica read-without-asking       TestReadIndex                  notices
replica reuse-read-contexts       TestReadsAtOnce                cannot
replica withhold-removals         TestRemovalIsAnnounced         cannot
replica no-pre-vote               TestReturnDisturbsNobody       notices
replica no-check-quorum           TestThreeHosts                 notices
store   no-sync                   TestCommitIsOnTheDisk          cannot
store   create-in-place           TestManyCreateAtOnce           cannot
store   full-is-fatal             TestFullStoreKeepsReadingAndDeleting cannot
'

simulation=
if [ "${1:-}" = -s ]; then
	simulation=yes
	shift
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for package in replica store; do
	go test -c -tags mutate -o "$dir/$package.test" "./$package"
done
run() { # package, name, test
	(cd "$1" && VOXELD_MUTATION=$2 "$dir/$1.test" -test.run "^$3\$" -test.count 1 -test.timeout 60s -rapid.nofailfile) \
		>"$dir/log" 2>&1
}
simulate() { # name
	(cd replica && VOXELD_MUTATION=$1 "$dir/replica.test" -test.run '^TestSimulation$' -test.timeout 20m \
		-simulation.seeds "${SEEDS:-1-40}" -simulation.minutes "${MINUTES:-20}" -rapid.nofailfile) >"$dir/log" 2>&1
}

# Every bug in the source is in the list.
listed=$(awk 'NF { print $1, $2 }' <<<"$mutants" | sort)
written=$(for package in replica store; do
	# Test files are the simulation: it has bugs of its own.
	grep -hoE 'mutated\("[a-z-]+"\)' $(ls "$package"/*.go | grep -v _test.go) | sed -E "s/mutated\(\"(.*)\"\)/$package \1/"
done | sort -u)
if [ "$listed" != "$written" ]; then
	diff <(echo "$listed") <(echo "$written") >&2 || true
	echo 'FAIL mutants: the list and the source differ' >&2
	exit 1
fi

killed=0
while read -r package name test simulated; do
	[ -n "$name" ] || continue
	[ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
	if [ -n "$simulation" ]; then
		[ "$simulated" = notices ] || continue
		if simulate "$name"; then
			echo "FAIL mutants: the simulation does not notice $name" >&2
			exit 1
		fi
		printf 'ok   mutant %-26s %s\n' "$name" "$(grep -oE 'seed [0-9]+, after .*' "$dir/log" | head -n 1 | cut -c1-160)"
		killed=$((killed + 1))
		continue
	fi
	if ! run "$package" '' "$test"; then
		cat "$dir/log" >&2
		echo "FAIL mutants: $test fails without any bug" >&2
		exit 1
	fi
	if run "$package" "$name" "$test"; then
		echo "FAIL mutants: $test does not notice $name" >&2
		exit 1
	fi
	printf 'ok   mutant %-26s %s\n' "$name" "$(grep -E '_test\.go:[0-9]+:|^panic:' "$dir/log" | grep -v seed | head -n 1 | sed 's/^ *//' | cut -c1-120)"
	killed=$((killed + 1))
done <<<"$mutants"
echo "mutants: $killed noticed"
