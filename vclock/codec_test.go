package vclock

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func encode(t interface {
	Helper()
	Fatal(...any)
}, s Stamp,
) []byte {
	t.Helper()
	data, err := s.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestStampBytes(t *testing.T) {
	s := Stamp{"ben", c("ada", 300, "ben", 1)}
	const want = "02" + "01" + "03616461" + "ac02" + "0362656e" + "01"
	if got := hex.EncodeToString(encode(t, s)); got != want {
		t.Errorf("%v is %s, want %s", s, got, want)
	}
}

func TestStampRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringN(1, 8, MaxID), 1, 40, rapid.ID[string]).Draw(t, "ids")
		var entries []Entry
		for _, id := range ids {
			entries = append(entries, Entry{ID(id), rapid.Uint64Min(1).Draw(t, "n")})
		}
		s := Stamp{ID(rapid.SampledFrom(ids).Draw(t, "author")), clockOf(entries...)}
		got, rest, err := DecodeStamp(append(encode(t, s), "rest"...))
		if err != nil || got.String() != s.String() || string(rest) != "rest" {
			t.Fatalf("%v came back as %v, followed by %q: %v", s, got, rest, err)
		}
	})
}

func TestTooLargeToTravel(t *testing.T) {
	var entries []Entry
	for i := range MaxEntries + 1 {
		entries = append(entries, Entry{ID(fmt.Sprintf("%016d", i)), uint64(1 + i)})
	}
	largest := Stamp{entries[7].ID, clockOf(entries[:MaxEntries]...)}
	if got, _, err := DecodeStamp(encode(t, largest)); err != nil || got.String() != largest.String() {
		t.Errorf("the largest clock does not come back: %v", err)
	}
	buf, err := Stamp{entries[7].ID, clockOf(entries...)}.Append([]byte("kept"))
	if !errors.Is(err, ErrTooLarge) || string(buf) != "kept" {
		t.Errorf("one more entry: %q, %v", buf, err)
	}
}

func TestDecodeStampRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                "",
		"no entries":             "00 00",
		"too many entries":       "8104 00" + strings.Repeat(" 016101", 513),
		"author out of range":    "01 01 016101",
		"entries missing":        "03 00 016101 016201",
		"id cut off":             "01 00 056101",
		"no id":                  "01 00 00 01 01",
		"id too long":            "01 00 21" + strings.Repeat("61", 33) + "01",
		"component of 0":         "01 00 016100",
		"component not shortest": "01 00 01618100",
		"component over 64 bits": "01 00 0161ffffffffffffffffff02",
		"count not shortest":     "8100 00 016101",
		"component cut off":      "01 00 016180",
		"twice the same":         "02 00 016101 016102",
		"not ascending":          "02 00 016201 016101",
	} {
		data, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if s, _, err := DecodeStamp(data); err == nil {
			t.Errorf("%s: read as %v", name, s)
		}
	}
}

// A decoded stamp encodes to the same bytes, and is valid for every other function.
func FuzzDecodeStamp(f *testing.F) {
	f.Add([]byte("\x01\x00\x01a\x01"))
	f.Add([]byte("\x02\x01\x03ada\xac\x02\x03ben\x01rest"))
	f.Add([]byte("\x80\x04\x00\x01a\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, rest, err := DecodeStamp(data)
		if err != nil {
			return
		}
		if again := append(encode(t, s), rest...); !bytes.Equal(again, data) {
			t.Fatalf("%x was read as %v, which is %x", data, s, again)
		}
		if n := s.Clock.Len(); n == 0 || n > MaxEntries || s.Own() == 0 {
			t.Fatalf("read %v", s)
		}
		if clockOf(append([]Entry(nil), s.Clock.entries...)...).String() != s.Clock.String() {
			t.Fatalf("%v is not in order", s)
		}
		o := NewOwner("me", 0)
		o.Merge(s, everybody)
		if got := Compare(s, o.Act()); s.Author != "me" && got != Before {
			t.Fatalf("%v is %v to what was done after hearing it", s, got)
		}
	})
}
