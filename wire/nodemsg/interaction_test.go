package nodemsg

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

// Counts of players can be added, and fit the names.
func TestPlayersAnswerBounds(t *testing.T) {
	for name, a := range map[string]PlayersAnswer{
		"many":  {Players: 1 << 63},
		"fewer": {Names: []string{"ada", "bob"}, Players: 1},
	} {
		if a.Valid() == nil {
			t.Errorf("no error: %s", name)
		}
	}
}

func TestInteractionsAreChecked(t *testing.T) {
	bob := Interaction{Kind: InteractionGift, To: player.GuestID("bob"), ToName: "bob", Block: chunk.Planks, Count: MaxGift}
	if err := bob.Valid(); err != nil {
		t.Errorf("%+v: %v", bob, err)
	}
	for _, c := range []struct {
		what, code string
		change     func(d *Interaction)
	}{
		{"no kind", wire.FailBadValue, func(d *Interaction) { d.Kind = 0 }},
		{"a hit with blocks", wire.FailBadValue, func(d *Interaction) { d.Kind = InteractionHit }},
		{"a gift of air", wire.FailBadValue, func(d *Interaction) { d.Block = 0 }},
		{"a gift of nothing", wire.FailBadValue, func(d *Interaction) { d.Count = 0 }},
		{"a gift of too much", wire.FailBadValue, func(d *Interaction) { d.Count = MaxGift + 1 }},
		{"nobody", wire.FailBadName, func(d *Interaction) { d.ToName = "" }},
		{"a kind of later, to nobody", wire.FailBadName, func(d *Interaction) { d.Kind, d.ToName = 9, "a b" }},
	} {
		d := bob
		c.change(&d)
		if got := wiretest.CodeOf(t, d.Valid()); got != c.code {
			t.Errorf("%s: code %q, want %q", c.what, got, c.code)
		}
		u := ChatEvent{Player: anID, Name: "ada", Text: "hits bob", Interaction: &d}
		if got := wiretest.CodeOf(t, u.Valid()); got != c.code {
			t.Errorf("%s in an utterance: code %q, want %q", c.what, got, c.code)
		}
	}
}

// A record has Done only if it exceeds the time of saving: older nodes refuse the additional field.
func TestRecordsCount(t *testing.T) {
	r := aRecord()
	before, err := EncodePlayerRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Counted(); got != uint64(r.SavedAt) {
		t.Errorf("a player saved at %d has done at most %d", r.SavedAt, got)
	}
	r.Done = uint64(r.SavedAt) + 5
	after, err := EncodePlayerRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := DecodePlayerRecord(after); err != nil || back != r || back.Counted() != r.Done || len(after) != len(before)+10 {
		t.Errorf("%+v came back as %+v, %v", r, back, err)
	}
	r.Done = wire.MaxDone + 1
	if code := wiretest.CodeOf(t, r.Valid()); code != wire.FailBadValue {
		t.Errorf("%d events: code %q", r.Done, code)
	}
}
