// Package notice makes the texts that players are shown: in English, and with a code and arguments, by which pages show
// them in their language. web/test/codes.json lists all codes; a new one needs its translations in web/src/text.
package notice

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// Notice is a text for players. It is an error if it says why something is not done: to be compared by errors.Is, since
// == of two such errors panics. The zero value says nothing.
type Notice struct {
	Text string `json:"text"` // in English
	// Code names the template of the text; empty if there is none, as for what people write.
	Code string `json:"code,omitempty"`
	// Args are what the template's placeholders stand for. Times are in Unix milliseconds, lengths of time in
	// milliseconds.
	Args map[string]string `json:"args,omitempty"`
	// Parts are what other placeholders stand for: notices that are parts of this one.
	Parts map[string]Notice `json:"parts,omitempty"`
}

// Plain returns a text that is the same in all languages.
func Plain(text string) Notice { return Notice{Text: text} }

// Error returns the text in English.
func (n Notice) Error() string { return n.Text }

// Sentence returns the notice with a sentence as its text in English. A command at its beginning stays as it is.
func (n Notice) Sentence() Notice {
	first, size := utf8.DecodeRuneInString(n.Text)
	if size > 0 && first != '/' {
		n.Text = string(unicode.ToUpper(first)) + strings.TrimSuffix(n.Text[size:], ".") + "."
	}
	return n
}

// Is reports whether another error is a notice with the same code.
func (n Notice) Is(other error) bool {
	it, is := other.(Notice)
	return is && n.Code != "" && it.Code == n.Code
}

// New returns a notice. The template is in English:
//
//	{name}            an argument; those of New are in the order in which their placeholders come first
//	{name:one|many}   a word for a number: the first if it is 1
//	{name:duration}   a time.Duration
//	{name:ago}        how long ago something was, a time.Duration
//	{name:time}       a time of day, a time.Time
//	{name:block}      the English name of a block
//	{name:usage}      the arguments of a command
//	[…{name}…]        nothing if the argument is empty
//
// Pages have templates of the same form for the code.
func New(code, template string, args ...any) Notice {
	n := Notice{Code: code}
	names := Placeholders(template)
	if len(names) != len(args) {
		panic(fmt.Sprintf("the notice %s has %d arguments and %d placeholders", code, len(args), len(names)))
	}
	for i, name := range names {
		n.bind(name, args[i])
	}
	n.Text = n.render(template)
	return n
}

// bind sets an argument.
func (n *Notice) bind(name string, value any) {
	var text string
	switch value := value.(type) {
	case Notice:
		if value.Code != "" {
			if n.Parts == nil {
				n.Parts = make(map[string]Notice)
			}
			n.Parts[name] = value
			return
		}
		text = value.Text
	case time.Duration:
		text = strconv.FormatInt(value.Milliseconds(), 10)
	case time.Time:
		text = strconv.FormatInt(value.UnixMilli(), 10)
	default:
		text = fmt.Sprint(value)
	}
	if text == "" {
		return
	}
	if n.Args == nil {
		n.Args = make(map[string]string)
	}
	n.Args[name] = text
}

// Placeholders returns the names of a template's placeholders, in order, each once.
func Placeholders(template string) (names []string) {
	seen := make(map[string]bool)
	for {
		_, placeholder, rest, found := cut(template, "{", "}")
		if !found {
			return names
		}
		name, _, _ := strings.Cut(placeholder, ":")
		if !seen[name] {
			seen[name], names = true, append(names, name)
		}
		template = rest
	}
}

// render returns the text of a template, or of a part of one.
func (n *Notice) render(template string) string {
	var b strings.Builder
	for {
		before, optional, rest, found := cut(template, "[", "]")
		n.fill(&b, before)
		if !found {
			return b.String()
		}
		if n.complete(optional) {
			n.fill(&b, optional)
		}
		template = rest
	}
}

// complete reports whether all placeholders of a part stand for something.
func (n *Notice) complete(part string) bool {
	for _, name := range Placeholders(part) {
		if n.Args[name] == "" && n.Parts[name].Text == "" {
			return false
		}
	}
	return true
}

// fill writes a part of a template, with what its placeholders stand for.
func (n *Notice) fill(b *strings.Builder, part string) {
	for {
		before, placeholder, rest, found := cut(part, "{", "}")
		b.WriteString(before)
		if !found {
			return
		}
		name, form, _ := strings.Cut(placeholder, ":")
		if inner, is := n.Parts[name]; is {
			b.WriteString(inner.Text)
		} else {
			b.WriteString(show(n.Args[name], form))
		}
		part = rest
	}
}

// show returns an argument in one of the forms of New.
func show(value, form string) string {
	number, _ := strconv.ParseInt(value, 10, 64)
	span := time.Duration(number) * time.Millisecond
	switch form {
	case "", "block", "usage":
		return value
	case "duration":
		return describe(span)
	case "ago":
		return humanize.RelTime(time.Time{}, time.Time{}.Add(span), "ago", "from now")
	case "time":
		return time.UnixMilli(number).UTC().Format("15:04:05 UTC")
	}
	one, many, _ := strings.Cut(form, "|")
	if number == 1 {
		return one
	}
	return many
}

// describe returns a length of time in its two largest units, rounded up.
func describe(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}}
	for i, large := range units[:3] {
		small := units[i+1]
		d := (d + small.size - 1) / small.size * small.size
		if d < large.size {
			continue
		}
		text := english.Plural(int(d/large.size), large.name, "")
		if rest := d % large.size; rest > 0 {
			text += " " + english.Plural(int(rest/small.size), small.name, "")
		}
		return text
	}
	return english.Plural(max(1, int((d+time.Second-1)/time.Second)), "second", "")
}

// cut splits a text around what is between two marks; without them, before is the whole text.
func cut(text, open, end string) (before, inner, rest string, found bool) {
	before, after, found := strings.Cut(text, open)
	if !found {
		return text, "", "", false
	}
	inner, rest, _ = strings.Cut(after, end)
	return before, inner, rest, true
}
