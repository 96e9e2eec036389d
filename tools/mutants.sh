#!/usr/bin/env bash
# mutants.sh [-s] [NAME…]: checks that the tests of packages replica, region, world and store detect known bugs, one for each pitfall of
# the libraries. mutants.patch adds the bugs to copies of the source, from which the test binaries are built. A process
# has the bug that VOXELD_MUTATION names, and the test in its row must then fail. It must pass without any bug. Without
# names, all bugs are checked.
# -s: the simulation must detect the bug, if the third column says "notices". It prints the virtual minutes that took.
#
# When a hunk no longer applies: git apply --3way --intent-to-add tools/mutants.patch, edit the source,
# git diff -U1 HEAD -- replica store region world >tools/mutants.patch, git apply --reverse tools/mutants.patch.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=${CGO_ENABLED:-0}

# package, name, test that detects the bug, whether the simulation does (replica/doc.go explains why not)
mutants='
replica acknowledge-before-fsync  TestCommittedAfterFsync        notices
replica send-before-fsync         TestNoWordBeforeFsync          notices
replica forget-vote               TestVoteSurvivesCrash          notices
replica forget-applied-index      TestReopenDeliversFromApplied  notices
replica applied-apart             TestAppliedIsOneCommit         notices
replica compact-ahead             TestCompaction                 notices
replica overwrite-committed       TestCommittedEntriesStay       cannot
replica accept-strangers          TestHostileFrames              cannot
replica believe-heartbeats        TestImplausibleMessagesAreRefused cannot
replica gate-by-committed-only    TestPendingMembersAreAccepted  cannot
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
replica/raftgroup withhold-removals TestRemovalIsAnnounced     cannot
replica no-pre-vote               TestReturnDisturbsNobody       notices
replica no-check-quorum           TestThreeHosts                 notices
region/integrity trust-old-copies TestOldCopyIsAbandoned cannot
region/integrity ignore-counts TestPromisesAreCountedFirst cannot
region/integrity abandon-twice TestOldCopyIsAbandoned cannot
region/integrity show-before-fsync TestPromisesAreCountedFirst cannot
region/integrity believe-refusals TestForgedRefusal cannot
region/integrity forget-abandoned TestOldCopyIsAbandoned cannot
region/integrity greet-acquaintances-only TestMembersRememberWithoutRaftMessages cannot
region/integrity announce-to-acquaintances TestMembersRememberWithoutRaftMessages cannot
region/integrity read-abandoned-streams TestStreamOfAnAbandonedReplica cannot
region/integrity forget-members TestStrangersAreForgottenFirst cannot
region/integrity list-beside-creations TestReplicaMadeMeanwhileIsAbandoned cannot
region/integrity reuse-forgotten-ids TestOldCopyIsAbandoned cannot
region/integrity create-unlisted TestOldCopyIsAbandoned cannot
store   no-sync                   TestCommitIsOnTheDisk          cannot
store   reuse-salts               TestEachGenerationHasItsSalt   cannot
store   create-in-place           TestManyCreateAtOnce           cannot
store   full-is-fatal             TestFullStoreKeepsReadingAndDeleting cannot
region  admit-old-copies          TestNothingIsReadOfAnOldCopy   cannot
region  keep-forgetful-copies TestForgottenEntriesAreNoticed cannot
region  forget-lost-replicas      TestReplicaThatIsNotInTheCopyIsReplaced cannot
region  trust-a-minority          TestBackupWithoutMajority      cannot
region  count-forgotten-copies    TestForgottenCopiesDoNotCount  cannot
region  read-behind               TestBackupAppliesWhatIsInTheLog cannot
region  believe-one-member        TestBackupOutvotesOneMember    cannot
region/backups count-earlier-replicas TestPlanGroup              cannot
region/backups index-is-enough     TestPlanGroup                  cannot
region  split-before-storing      TestSplitIsStoredFirst         cannot
region  keep-merged-copies        TestRaces                      cannot
region  believe-one-vacated       TestLieThatLandWasGivenUp      cannot
region  sweep-on-one-word         TestUnlistedLandIsKept         cannot
world   split-without-sequences   TestEditsAreAppliedOnceAcrossSplits cannot
world   merge-without-sequences   TestEditsAreAppliedOnceAcrossSplits cannot
world   thaw-any-attempt          TestFreeze                     cannot
world   freeze-for-the-past       TestFreeze                     cannot
world   edit-while-frozen         TestFreeze                     cannot
world   merge-any-attempt         TestAbandonLaterAttempt        cannot
world   list-merged-regions       TestCatalogSplits              cannot
world   vacate-edited             TestVacateOnlyEmptyLand        cannot
world   mark-twice                TestRollbacksAgreeWithModel    cannot
world   undo-what-is-newer        TestRollbacksAgreeWithModel    cannot
world   overwrite-what-is-newer   TestLandAgreesWithModel        cannot
world   answer-twice              TestEffectsTakePlaceOnce       cannot
world   change-what-is-newer      TestAnswers                    cannot
world   split-without-grants      TestModsSplitAndMerge          cannot
'

simulation=
if [ "${1:-}" = -s ]; then
	simulation=yes
	shift
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The patched copies, and the overlay that makes the go command read them.
patch=$PWD/tools/mutants.patch
while read -r file; do
	mkdir -p "$dir/source/$(dirname "$file")"
	[ ! -e "$file" ] || cp "$file" "$dir/source/$file"
done < <(sed -n 's#^+++ b/##p' "$patch")
(cd "$dir/source" && GIT_CEILING_DIRECTORIES=$dir git apply "$patch") || { echo 'FAIL mutants: tools/mutants.patch does not apply' >&2; exit 1; }
(cd "$dir/source" && find . -name '*.go' -printf '%P\n') | while read -r file; do
	printf '"%s": "%s"\n' "$PWD/$file" "$dir/source/$file"
done | sed '1s/^/{"Replace": {/; $!s/$/,/; $s/$/}}/' >"$dir/overlay.json"
for package in $(awk 'NF { print $1 }' <<<"$mutants" | sort -u); do
	go test -c -overlay "$dir/overlay.json" -o "$dir/${package//\//-}.test" "./$package"
done
run() { # package, name, test, how often it is run if it does not fail: some bugs need a race
	local flags=()
	! grep -q pgregory.net/rapid "$1"/*_test.go || flags=(-rapid.nofailfile)
	(cd "$1" && VOXELD_MUTATION=$2 "$dir/${1//\//-}.test" -test.run "^$3\$" -test.count "$4" -test.failfast -test.timeout 60s \
		"${flags[@]}") >"$dir/log" 2>&1
}
simulate() { # name
	(cd replica && VOXELD_MUTATION=$1 "$dir/replica.test" -test.run '^TestSimulation$' -test.timeout 20m \
		-simulation.seeds "${SEEDS:-1-40}" -simulation.minutes "${MINUTES:-20}" -rapid.nofailfile) >"$dir/log" 2>&1
}

# Every bug in the patch is in the list.
listed=$(awk 'NF { sub("/.*", "", $1); print $1, $2 }' <<<"$mutants" | sort)
written=$(sed -nE 's#^\+\+\+ b/([^/]*)/.*#package \1#p; s#^\+.*mutated\("([a-z-]+)"\).*#\1#p' "$patch" |
	awk '$1 == "package" { package = $2; next } { print package, $1 }' | sort -u)
if [ "$listed" != "$written" ]; then
	diff <(echo "$listed") <(echo "$written") >&2 || true
	echo 'FAIL mutants: the list and the patch differ' >&2
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
	if ! run "$package" '' "$test" 1; then
		cat "$dir/log" >&2
		echo "FAIL mutants: $test fails without any bug" >&2
		exit 1
	fi
	if run "$package" "$name" "$test" 20; then
		echo "FAIL mutants: $test does not notice $name" >&2
		exit 1
	fi
	printf 'ok   mutant %-26s %s\n' "$name" "$(grep -E '_test\.go:[0-9]+:|^panic:' "$dir/log" | grep -v seed | head -n 1 | sed 's/^ *//' | cut -c1-120)"
	killed=$((killed + 1))
done <<<"$mutants"
echo "mutants: $killed noticed"
