package wire

import (
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/player"
)

func TestDeedsAreChecked(t *testing.T) {
	bob := Interaction{Kind: InteractionGift, To: player.GuestID("bob"), ToName: "bob", Block: chunk.Planks, Count: MaxGift}
	if err := bob.Valid(); err != nil {
		t.Errorf("%+v: %v", bob, err)
	}
	for _, c := range []struct {
		what, code string
		change     func(d *Interaction)
	}{
		{"no kind", FailBadValue, func(d *Interaction) { d.Kind = 0 }},
		{"a hit with blocks", FailBadValue, func(d *Interaction) { d.Kind = InteractionHit }},
		{"a gift of air", FailBadValue, func(d *Interaction) { d.Block = 0 }},
		{"a gift of nothing", FailBadValue, func(d *Interaction) { d.Count = 0 }},
		{"a gift of too much", FailBadValue, func(d *Interaction) { d.Count = MaxGift + 1 }},
		{"nobody", FailBadName, func(d *Interaction) { d.ToName = "" }},
		{"a kind of later, to nobody", FailBadName, func(d *Interaction) { d.Kind, d.ToName = 9, "a b" }},
	} {
		d := bob
		c.change(&d)
		if got := codeOf(t, d.Valid()); got != c.code {
			t.Errorf("%s: code %q, want %q", c.what, got, c.code)
		}
		u := ChatEvent{Player: anID, Name: "ada", Text: "hits bob", Interaction: &d}
		if got := codeOf(t, u.Valid()); got != c.code {
			t.Errorf("%s in an utterance: code %q, want %q", c.what, got, c.code)
		}
	}
}

// A node that does not know a kind of deed shows its text.
func TestDeedMessages(t *testing.T) {
	bob := player.GuestID("bob").String()
	for _, c := range []struct {
		u    ChatEvent
		want FromServer
		says string
	}{
		{aDeed(InteractionHit, 0, 0), Struck{Player: anID.String(), Name: "ada", To: bob, ToName: "bob"}, "hits bob"},
		{
			aDeed(InteractionGift, chunk.Planks, 3),
			Given{Player: anID.String(), Name: "ada", To: bob, ToName: "bob", Block: uint16(chunk.Planks), Count: 3},
			"gives bob 3 × planks",
		},
		{aDeed(9, 0, 0), nil, "hits bob"},
		{ChatEvent{Player: anID, Name: "ada", Text: "hi"}, nil, "hi"},
	} {
		if got, ok := InteractionMessage(&c.u); ok != (c.want != nil) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v is sent as %+v, %v", c.u, got, ok)
		}
		if c.u.Text != c.says || c.u.Valid() != nil {
			t.Errorf("the words are %q, want %q; %v", c.u.Text, c.says, c.u.Valid())
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
	r.Done = MaxDone + 1
	if code := codeOf(t, r.Valid()); code != FailBadValue {
		t.Errorf("%d events: code %q", r.Done, code)
	}
}
