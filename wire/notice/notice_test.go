package notice

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	operator := New("an_operator", "an operator")
	for _, c := range []struct {
		notice Notice
		want   string
	}{
		{New("x", "There are no warps."), "There are no warps."},
		{New("x", "{name} is yours: /trust {name} {who}", "home", "bob"), "home is yours: /trust home bob"},
		{New("x", "{n} {n:block|blocks}", 1), "1 block"},
		{New("x", "{n} {n:block|blocks}", 0), "0 blocks"},
		{New("x", "{n} {n:block|blocks}", 21), "21 blocks"},
		{New("x", "banned by {by}[ ({left:duration} left)][: {why}].", operator, 90*time.Minute, ""), "banned by an operator (1 hour 30 minutes left)."},
		{New("x", "banned by {by}[ ({left:duration} left)][: {why}].", Plain("ada"), "", "griefing"), "banned by ada: griefing."},
		{New("x", "here[, {open}][, {closed}]", New("open", "open"), Notice{}), "here, open"},
		{New("x", "{place}: {ago:ago}, {block:block}", "1,2,3", 3*time.Hour+time.Minute, "Stone"), "1,2,3: 3 hours ago, Stone"},
		{New("x", "at {t:time}", time.UnixMilli(1_767_225_600_000)), "at 00:00:00 UTC"},
		{New("x", "{text}", "[NAME] {x}"), "[NAME] {x}"},
	} {
		if c.notice.Text != c.want {
			t.Errorf("%q, want %q", c.notice.Text, c.want)
		}
	}
	n := New("x", "{by} {left:duration} {n:a|b}[{none}]", operator, time.Second, 3, "")
	if want := map[string]string{"left": "1000", "n": "3"}; !maps.Equal(n.Args, want) || n.Parts["by"].Code != "an_operator" {
		t.Errorf("the arguments are %v and %v", n.Args, n.Parts)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "1 second", 1500 * time.Millisecond: "2 seconds", 59*time.Second + 1: "1 minute", time.Hour: "1 hour",
		36*time.Hour + time.Minute: "1 day 13 hours", 30 * 24 * time.Hour: "30 days",
	} {
		if got := describe(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"there are 2": "There are 2.", "There are 2.": "There are 2.", "ähnlich": "Ähnlich.", "/help lists them": "/help lists them", "": "",
	} {
		if got := Plain(text).Sentence().Text; got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// Sentinel errors are found in others.
func TestNoticeIsAnError(t *testing.T) {
	sentinel := New("repeated", "that was done already")
	if err := fmt.Errorf("enter: %w", sentinel); !errors.Is(err, sentinel) || errors.Is(err, New("other", "that was done already")) {
		t.Error("a notice is not found in an error, or another one is")
	}
	if errors.Is(Plain("x"), Plain("x")) {
		t.Error("texts without a code are the same")
	}
}
