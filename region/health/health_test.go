package health

import (
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Of each member whose copy is missing it is said what to do: of those that do not answer, and of those whose disk is
// full.
func TestMissingCopies(t *testing.T) {
	const silent, full = "those that are silent", "run voxeld doctor on "
	for name, c := range map[string]struct {
		silent, full string // peers
		want, not    []string
	}{
		"silent": {silent: "D", want: []string{silent}, not: []string{full}},
		"full":   {full: "E", want: []string{full + "E,"}, not: []string{silent}},
		"both":   {silent: "D", full: "E", want: []string{silent, full + "E,"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := examined{
				info: nodemsg.Region{ID: 7}, limits: membership.Limits{Copies: 5, Nodes: 5}, leaving: func(string) bool { return false },
				statuses: integrity.StatusPoll{Statuses: map[string]map[uint64]nodemsg.RegionStatus{}},
			}
			var leader nodemsg.RegionStatus
			for i, peer := range []string{"A", "B", "D", "E", "F"} {
				m := nodemsg.MemberStatus{Silent: peer == c.silent || peer == c.full}
				m.Replica.ID, m.Replica.Peer = uint64(i+1), peer
				leader.Members = append(leader.Members, m)
				if peer != c.silent {
					x.statuses.Statuses[peer] = map[uint64]nodemsg.RegionStatus{7: {State: nodemsg.StateOpen, Replica: uint64(i + 1)}}
				}
			}
			found := ""
			x.assessMembers(leader, func(kind, what, do string) { found += kind + ": " + what + ": " + do + "\n" })
			for _, want := range c.want {
				if !strings.Contains(found, want) {
					t.Errorf("%q is not said: %s", want, found)
				}
			}
			for _, not := range c.not {
				if strings.Contains(found, not) {
					t.Errorf("%q is said: %s", not, found)
				}
			}
		})
	}
}
