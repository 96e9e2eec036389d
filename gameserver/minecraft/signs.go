package minecraft

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file shows the texts of signs, and reads those that the client's player writes.

// signEntity is the number of signs among the game's block entities.
const signEntity = 7

// signData is what the client keeps of a sign.
type signData struct {
	Front struct {
		Lines []string `nbt:"messages"` // texts in JSON
		Color string   `nbt:"color"`
	} `nbt:"front_text"`
}

// writeSigns sets and shows texts of signs.
func writeSigns(cl *Client, m sessionmsg.Signs) {
	l := cl.mu.lands[m.Chunk]
	if l == nil {
		return
	}
	for _, s := range m.Signs {
		pos := grid.Pos{X: s.X, Y: s.Y, Z: s.Z}
		l.signs[pos] = s.Text
		showSign(cl, pos, s.Text)
	}
}

// changeSign handles the change of a block: the text of the sign that was there is gone.
func changeSign(cl *Client, l *land, pos grid.Pos, to chunk.Block) {
	if _, had := l.signs[pos]; !had {
		return
	}
	delete(l.signs, pos)
	if to.IsSign() { // to the client it is the same sign
		showSign(cl, pos, "")
	}
}

// showSign shows the text of a sign. The client ignores it if there is none.
func showSign(cl *Client, pos grid.Pos, text string) {
	if cl.mu.state != inPlay || !shownThere(pos.Chunk()) {
		return
	}
	var data signData
	data.Front.Color = "black"
	for _, line := range shownLines(text) {
		data.Front.Lines = append(data.Front.Lines, ascii(component{Text: line}.json()))
	}
	cl.put(append(begin(packetBlockEntity).position(pos).varint(signEntity), marshal(data)...))
}

// signLines are those that the client shows of a sign.
type signLines [wire.MaxSignLines]string

// shownLines returns the lines of a text.
func shownLines(text string) (shown signLines) {
	lines := strings.Split(text, "\n")
	for i := range min(len(lines), len(shown)) {
		shown[i] = textOf(lines[i], "").Text
	}
	return shown
}

// text returns the text that lines become. What is too long for a line goes on in the next one, if that is blank.
func (lines signLines) text() string {
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
		if i+1 == len(lines) || utf8.RuneCountInString(lines[i]) <= wire.MaxSignLine || strings.TrimSpace(lines[i+1]) != "" {
			continue
		}
		fits := string([]rune(lines[i])[:wire.MaxSignLine+1]) // with a blank at its end
		if end := strings.LastIndex(fits, " "); end > 0 {
			lines[i], lines[i+1] = strings.TrimRight(fits[:end], " "), lines[i][end+1:]
		}
	}
	return strings.TrimRight(strings.Join(lines[:], "\n"), "\n")
}

// signForm is the form for the text of a sign that was opened last. The client sends its lines when it is closed, also
// if the player has changed none.
type signForm struct {
	at    grid.Pos
	lines signLines // that it was opened with
}

// openSign has the client show its player a form for the text of a sign.
func (cl *Client) openSign(pos grid.Pos) {
	cl.mu.form = signForm{at: pos, lines: shownLines(cl.mu.lands[pos.Chunk()].signs[pos])}
	cl.put(begin(packetOpenSign).position(pos).u8(1)) // its front
}

// maxWritten is how many characters of a line the client sends at most.
const maxWritten = 384

// readSign returns the edit that writes on a sign, if the player has changed its text. The client shows what it has sent:
// what is not written is put back.
func (cl *Client) readSign(f *fields, now time.Time) (sessionmsg.FromClient, error) {
	pos, front := f.position(), f.u8() != 0
	var lines signLines
	for i := range lines {
		lines[i] = f.text(maxWritten)
	}
	l := cl.mu.lands[pos.Chunk()]
	if f.bad || l == nil {
		return nil, nil
	}
	refused, text := "", lines.text()
	switch {
	case !front, text == l.signs[pos], cl.mu.form == signForm{pos, lines}:
	case cl.mu.teleport.pending:
		refused = wire.RefusedStale
	case !cl.looks.AllowN(now, 1):
		refused = wire.RefusedRate
	case wire.CheckSign(text) != nil:
		refused = wire.RefusedText
	default:
		if sign, _ := cl.mu.lands.blocks()(pos); sign.IsSign() {
			return cl.mu.requests.edits.AddAll([]games.Change{{Pos: pos, To: sign, Text: text}}, now)
		}
	}
	cl.a.CountRefused(games.Change{}, refused, cl.notice)
	showSign(cl, pos, l.signs[pos]) // the next tick flushes it
	return nil, nil
}

// ascii returns a text in JSON with escapes for what is not ASCII: the game's own encoding of texts in such data
// differs from UTF-8.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, "\\u%04x", unit)
		}
	}
	return b.String()
}
