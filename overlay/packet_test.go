package overlay

import (
	"bytes"
	"cmp"
	"errors"
	"reflect"
	"slices"
	"testing"
)

// twice is a packet that names avatar 2 twice.
var twice = []byte{0: 2, 1: 2, 5: 2, 9: 0}

func FuzzReadPacket(f *testing.F) {
	u := Quantise(Update{Origin: 7, Round: 70001, At: Point{1100, 3}})
	p := &Position{Update: u, Compact: true}
	f.Add(AppendPacket(nil, []Message{{From: 7, To: 1, Payload: p}, {From: 7, To: 2, Payload: p}, {From: 8, To: 2, Payload: &Report{Update: u}}}))
	listed := &Position{Update: u, Listed: true, Receivers: []ID{1, 2, 40}}
	f.Add(AppendPacket(nil, []Message{{From: 7, To: 2, Payload: listed}, {From: 7, To: 4, Payload: listed}}))
	short := &Position{Update: u, Compact: true, Listed: true, Receivers: []ID{2, 4, 40}}
	f.Add(AppendPacket(nil, []Message{{From: 7, To: 2, Payload: short}, {From: 7, To: 4, Payload: short}}))
	f.Add(AppendPacket(nil, []Message{{From: 7, To: 2, Payload: &Introduction{Updates: []Update{u, u}, Compact: true}}, {From: 9, To: 4, Payload: p}}))
	f.Add(twice)
	near := func(to ID) (Reference, bool) { return Reference{At: Point{1000, 0}, Round: 70000}, to%2 == 0 }
	f.Fuzz(func(t *testing.T, data []byte) {
		messages, err := ReadPacket(data, near)
		if err != nil && !errors.Is(err, ErrPayload) {
			t.Fatal(err)
		}
		if len(messages) > maxMessages {
			t.Fatalf("read %d messages", len(messages))
		}
		read, last := 0, Payload(nil)
		for _, m := range messages {
			if m.To%2 != 0 || m.Payload == nil {
				t.Fatalf("read %+v", m)
			}
			if p, is := m.Payload.(*Position); is && (!slices.IsSorted(p.Receivers) || len(p.Receivers) > MaxReceivers) {
				t.Fatalf("read a list of %v", p.Receivers)
			}
			if m.Payload != last {
				read += m.Bytes
			}
			last = m.Payload
		}
		if read > maxRead {
			t.Fatalf("of %d bytes payloads of %d were read", len(data), read)
		}
		if err != nil || len(data) > 4*maxNames { // with possibly more avatars than a packet can name
			return
		}
		// What was decoded can be encoded, and decodes to the same.
		again, err := ReadPacket(AppendPacket(nil, messages), near)
		if err != nil {
			t.Fatalf("%+v are written, and not read: %v", messages, err)
		}
		byReceiver(messages)
		byReceiver(again)
		if !reflect.DeepEqual(messages, again) {
			t.Fatalf("%+v became %+v", messages, again)
		}
	})
}

// byReceiver sorts messages by their receivers and clears their lengths, because the encoding may have become shorter.
func byReceiver(messages []Message) {
	slices.SortStableFunc(messages, func(a, b Message) int { return cmp.Compare(a.To, b.To) })
	for i := range messages {
		messages[i].Bytes = 0
	}
}

// A packet makes its reader decode no more than maxRead bytes of payloads, whatever the receivers, and cannot name an
// avatar twice.
func TestPacketsAreReadWithinBounds(t *testing.T) {
	intro := &Introduction{Updates: make([]Update, 256), Compact: true}
	var messages []Message
	for from := range ID(8) {
		for to := range ID(1024) {
			messages = append(messages, Message{From: from, To: to, Payload: intro})
		}
	}
	data := AppendPacket(nil, messages)
	got, err := ReadPacket(data, func(ID) (Reference, bool) { return Reference{}, true })
	read := 0
	for _, m := range got {
		read += m.Bytes // each was decoded separately
	}
	if !errors.Is(err, ErrPayload) || read > maxRead || read < maxRead/2 {
		t.Errorf("of %d bytes payloads of %d are read, want at most %d: %v", len(data), read, maxRead, err)
	}
	p := &Position{Compact: true, Listed: true, Receivers: []ID{1, 2, 3}}
	data = AppendPacket(nil, []Message{{From: 7, To: 1, Payload: p}, {From: 7, To: 2, Payload: p}})
	double := bytes.Replace(data, []byte{1, 3, 0, 0, 0}, []byte{1, 1, 0, 0, 0}, 1) // avatar 1 is in a receiver list only
	mixed := slices.Clone(data)
	mixed[14+4+2+1+1] |= flagShort // after the names, the sender, a set, the length and the kind
	for why, packet := range map[string][]byte{"2 is named twice": twice, "1 is named twice": double, "the list's ids are not short": mixed} {
		if got, err := ReadPacket(packet, func(ID) (Reference, bool) { return Reference{}, true }); !errors.Is(err, ErrPayload) || len(got) > 0 {
			t.Errorf("%s, and %d messages are read: %v", why, len(got), err)
		}
	}
}

// A packet names no more avatars than its reader accepts, and each only once.
func TestPacketsNameOnce(t *testing.T) {
	list := make([]ID, MaxReceivers)
	for i := range list {
		list[i] = ID(i)
	}
	var messages []Message
	for from := range ID(100) {
		p := &Position{Update: Update{Origin: from, Round: 5}, Hops: 1, Listed: true, Receivers: list}
		for to := range ID(50) {
			messages = append(messages, Message{From: from, To: 2 * to, Payload: p})
		}
	}
	data := AppendPacket(nil, messages)
	got, err := ReadPacket(data, func(ID) (Reference, bool) { return Reference{}, true })
	if err != nil || len(got) != len(messages) {
		t.Fatalf("of %d messages come %d: %v", len(messages), len(got), err)
	}
	if p := got[0].Payload.(*Position); !slices.Equal(p.Receivers, list) || !p.Listed {
		t.Errorf("the list is read as %v", p.Receivers)
	}
	if most := 4*MaxReceivers + 100*(MaxReceivers/8+50); len(data) > most {
		t.Errorf("%d bytes, want at most %d", len(data), most)
	}
	for _, bad := range [][]byte{
		{0, 0, 1, 0, 0, 0, 1, 1},          // to an unnamed avatar
		{0, 1, 9, 0, 0, 0, 1, 0, 0, 0, 0}, // without a receiver
		append(AppendPacket(nil, messages[:1]), 1),
	} {
		if _, err := ReadPacket(bad, func(ID) (Reference, bool) { return Reference{}, true }); !errors.Is(err, ErrPayload) {
			t.Errorf("%x is read: %v", bad, err)
		}
	}
}

// Messages to avatars beyond those that a packet can name are left out, and no others.
func TestPacketsLeaveOutUnnamedReceivers(t *testing.T) {
	all, few, last := &Report{}, &Report{}, &Report{}
	var messages []Message
	for to := range ID(maxNames + 1) {
		messages = append(messages, Message{To: to, Payload: all})
	}
	messages = append(messages, Message{To: maxNames, Payload: few}, Message{To: 5, Payload: last})
	got, err := ReadPacket(AppendPacket(nil, messages), func(ID) (Reference, bool) { return Reference{}, true })
	if err != nil || len(got) != maxNames+1 || got[maxNames].To != 5 {
		t.Errorf("of %d messages come %d, want %d: %v", len(messages), len(got), maxNames+1, err)
	}
}

func TestRenewIsOfTheOwnUpdateOnly(t *testing.T) {
	at, later := Point{1, 2}, Point{3, 4}
	self := Update{Origin: 7, Round: 9, At: later, GameData: 5}
	p := &Position{Update: Update{Origin: 7, Round: 9, At: at, GameData: 4}}
	forwarded := &Position{Update: Update{Origin: 8, Round: 9, At: at}}
	g := &Gossip{Updates: []AgedUpdate{{Update: p.Update}, {Update: forwarded.Update, Age: 1}, {Update: Update{Origin: 7, Round: 8, At: at}, Age: 2}}}
	for _, payload := range []Payload{p, forwarded, g, &SensorRequest{}} {
		Renew(payload, self)
	}
	if p.Update != self || forwarded.Update.At != at || g.Updates[0].Update != self || g.Updates[1].At != at || g.Updates[2].At != at {
		t.Errorf("renewed are %+v, %+v and %+v", p, forwarded, g)
	}
	var places []Update
	for _, payload := range []Payload{p, g, &SensorSuggestion{Node: self}} {
		places = AppendPlaces(places, payload)
	}
	if len(places) != 4 || places[0] != self || places[2].Origin != 8 {
		t.Errorf("places: %+v", places)
	}
}
