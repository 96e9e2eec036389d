package sessionmsg

import (
	"reflect"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

// Clients follow a Reconnect without further checks, so the decoder refuses anything but a plain address.
func TestReconnectRefuses(t *testing.T) {
	good := `{"url":"ws://b/ws","game":"b:1"}`
	long := `{"url":"ws://b/` + strings.Repeat("x", wire.MaxURL) + `","game":"b:1"}`
	for name, homes := range map[string]string{
		"no list":          `null`,
		"too many":         `[` + strings.Repeat(good+",", wire.MaxGateways) + good + `]`,
		"a page":           `[{"url":"http://b/","game":"b:1"}]`,
		"a script":         `[{"url":"javascript:alert(1)","game":"b:1"}]`,
		"no host":          `[{"url":"ws:///ws","game":"b:1"}]`,
		"a password":       `[{"url":"ws://ann:secret@b/ws","game":"b:1"}]`,
		"a query":          `[{"url":"ws://b/ws?x","game":"b:1"}]`,
		"a fragment":       `[{"url":"ws://b/ws#","game":"b:1"}]`,
		"a space":          `[{"url":"ws://b/w s","game":"b:1"}]`,
		"no game server":   `[{"url":"ws://b/ws","game":""}]`,
		"no port":          `[{"url":"ws://b/ws","game":"b"}]`,
		"long":             `[` + long + `]`,
		"upper-case words": `[{"url":"WS://b/ws","game":"b:1"}]`,
	} {
		if m, err := DecodeServer([]byte(`{"type":"reconnect","homes":` + homes + `,"reason":""}`)); err == nil {
			t.Errorf("%s: taken as %+v", name, m)
		} else {
			wiretest.RefusedOnly(t, err)
		}
	}
	m, err := DecodeServer([]byte(`{"type":"reconnect","homes":[` + good + `],"reason":"x"}`))
	want := Reconnect{Gateways: []wire.Gateway{{URL: "ws://b/ws", Game: "b:1"}}, Reason: "x"}
	if err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, %v; want %+v", m, err, want)
	}
	if _, err := EncodeServer(Reconnect{}); err == nil {
		t.Error("a message without a list was written")
	}
}
