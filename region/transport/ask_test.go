package transport

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// refuser is a peer that refuses all questions with a reason.
type refuser struct {
	Peers
	why error
}

func (r refuser) Ask(context.Context, string, string, []byte) ([]byte, error) {
	return nodemsg.EncodeAnswer(Refused(r.why))
}

// A refusal of another node says the same to players as one of this node, in their languages; a long one is cut.
func TestRefusals(t *testing.T) {
	quota := notice.New("commands_of_node", "a node may enter {rate} commands a second, as {whose}", 5, notice.New("admins", "its admins say"))
	for _, c := range []struct{ why, want error }{
		{quota, quota},
		{fmt.Errorf("enter: %w", quota), quota},
		{errors.New("it is late"), wire.NoticeOf(errors.New("it is late"))},
		{notice.New("long", "{text}", strings.Repeat("x", wire.MaxErrorText+1)), wire.NoticeOf(errors.New(strings.Repeat("x", wire.MaxErrorText)))},
	} {
		_, err := Questions{refuser{why: c.why}}.Ask(t.Context(), "peer", nodemsg.Question{Describe: &nodemsg.Describe{}})
		if got := wire.NoticeOf(err); !reflect.DeepEqual(error(got), c.want) {
			t.Errorf("%v arrives as %#v, want %#v", c.why, got, c.want)
		}
	}
}
