package moderation

import (
	"context"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Who has the answer to a command may give the next one at once; before, it is refused.
func TestOneCommandAtATime(t *testing.T) {
	var s Permissions
	g := Gateway{Background: func(task func(context.Context)) { task(t.Context()) }}
	answers := func(text string) func(context.Context) []string {
		return func(context.Context) []string { return []string{text} }
	}
	var said []string
	s.send = func(m sessionmsg.FromServer) {
		said = append(said, m.(sessionmsg.Notice).Text)
		if len(said) == 2 {
			s.background(g, answers("third"))
		}
	}
	s.background(g, func(context.Context) []string {
		s.background(g, answers("never"))
		return []string{"second"}
	})
	if want := []string{"Wait until your last command is carried out.", "second", "third"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}
