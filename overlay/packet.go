package overlay

import (
	"encoding/binary"
	"fmt"
	mathbits "math/bits"
	"slices"
)

// A packet holds all messages of one round from one gateway to another, for all their avatars. It starts with a list of
// avatars, each named once, followed by letters: payloads with their sender and receivers.
//
//	addressees, others: a varint and u32 each. Others are in receiver lists only
//	letters:
//	  from u32, receivers: a set
//	  twice the length of the payload, and 1 if a receiver list follows: a varint
//	  payload (see AppendPayload), without its receiver list if that follows
//	  receiver list: a set
//	set: how many bytes, a varint; bytes: bit i, the least of byte i/8 being 0, is the i-th of addressees and others
//
// A payload for many avatars of one gateway, such as most own updates, is written once. Lists of short ids stay in
// their payloads.

// maxNames is the most avatars that a packet names, and maxMessages the most messages that it expands to: a thousand
// avatars to a thousand.
const (
	maxNames    = 1 << 14
	maxMessages = 1 << 20
)

// maxPayload bounds a payload's bytes: MaxUpdates updates in their longest form.
const maxPayload = 64 << 10

// maxRead bounds the bytes of all payloads that a packet makes its reader decode: a short-form payload is decoded once
// for each receiver. Others are decoded once, and a packet between gateways has less than 1 MiB of them.
const maxRead = 4 << 20

// letter is a payload for some avatars of one gateway.
type letter struct {
	from      ID
	payload   Payload
	receivers []ID
}

// lettersOf groups messages that share a payload.
func lettersOf(messages []Message) []letter {
	type key struct {
		from    ID
		payload Payload
	}
	index := make(map[key]int)
	var letters []letter
	last := key{} // most messages share a letter with the previous one
	i := -1
	for _, m := range messages {
		if k := (key{m.From, m.Payload}); i < 0 || k != last {
			known := false
			if i, known = index[k]; !known {
				i = len(letters)
				index[k] = i
				letters = append(letters, letter{from: m.From, payload: m.Payload})
			}
			last = k
		}
		letters[i].receivers = append(letters[i].receivers, m.To)
	}
	return letters
}

// AppendPacket appends messages in order, except that messages with the same payload are grouped with the first of
// them. Messages to avatars beyond maxNames are left out, and so are letters without a remaining receiver. The bytes,
// all numbers little-endian:
//
//	varint   how many avatars get letters; then each one's number, u32
//	varint   how many others are in receiver lists; then each one's number, u32
//
//	u32      number of the avatar that sends; this and what follows once for each letter
//	set      whom the letter is for, one at least
//	varint   twice the length of the payload (at most 64 KiB), and 1 more if a receiver list follows it
//	bytes    the payload: a message of this package in its long form, or a gossip
//	[set]    the receiver list
//
// A set is a varint, its length in bytes, and these: bit i (the lowest of byte i/8 being bit 0) is the i-th of the
// named avatars.
func AppendPacket(b []byte, messages []Message) []byte {
	letters := lettersOf(messages)
	places := make(map[ID]int) // index in the list of names
	var names []ID
	name := func(ids []ID) {
		for _, id := range ids {
			if _, known := places[id]; !known && len(names) < maxNames {
				places[id] = len(names)
				names = append(names, id)
			}
		}
	}
	for _, l := range letters {
		name(l.receivers)
	}
	addressees := len(names)
	for _, l := range letters {
		if p := longList(l.payload); p != nil {
			name(p.Receivers)
		}
	}
	for _, part := range [][]ID{names[:addressees], names[addressees:]} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		for _, id := range part {
			b = binary.LittleEndian.AppendUint32(b, uint32(id))
		}
	}
	set := make([]byte, (len(names)+7)/8)
	named := func(id ID) bool { _, known := places[id]; return known }
	for _, l := range letters {
		if !slices.ContainsFunc(l.receivers, named) {
			continue
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(l.from))
		b = appendSet(b, set, places, l.receivers)
		p := longList(l.payload)
		if p == nil {
			b = binary.AppendUvarint(b, uint64(2*PayloadBytes(l.from, l.payload)))
			b = AppendPayload(b, l.from, l.payload)
			continue
		}
		bare := *p
		bare.Listed, bare.Receivers = false, nil
		b = binary.AppendUvarint(b, uint64(2*PayloadBytes(l.from, &bare)+1))
		b = appendSet(AppendPayload(b, l.from, &bare), set, places, p.Receivers)
	}
	return b
}

// longList returns the payload if it has a receiver list of long ids, otherwise nil.
func longList(p Payload) *Position {
	if p, is := p.(*Position); is && p.Listed && !p.Short {
		return p
	}
	return nil
}

// appendSet appends a set of avatars. set is scratch space.
func appendSet(b, set []byte, places map[ID]int, ids []ID) []byte {
	clear(set)
	n := 0
	for _, id := range ids {
		if i, named := places[id]; named {
			set[i/8] |= 1 << (i % 8)
			n = max(n, i/8+1)
		}
	}
	return append(binary.AppendUvarint(b, uint64(n)), set[:n]...)
}

// AppendPlaces appends the positions of avatars in a payload from another gateway. A game may show them immediately:
// the machine that receives the payload later has nothing newer.
func AppendPlaces(places []Update, p Payload) []Update {
	switch p := p.(type) {
	case *Position:
		return append(places, p.Update)
	case *Gossip:
		for i := range p.Updates {
			places = append(places, p.Updates[i].Update)
		}
	}
	return places
}

// Renew replaces position and body in the sender's own update of a payload that was not sent yet: the machine chose the
// receivers earlier.
func Renew(p Payload, self Update) {
	renew := func(u *Update) {
		if u.Origin == self.Origin && u.Round == self.Round {
			u.At, u.GameData = self.At, self.GameData
		}
	}
	switch p := p.(type) {
	case *Position:
		renew(&p.Update)
	case *Gossip:
		for i := range p.Updates {
			renew(&p.Updates[i].Update)
		}
	}
}

// ReadPacket decodes what AppendPacket wrote. near returns the Reference of a receiver, or false for an absent avatar,
// whose messages are left out. Bytes of the messages is the length of their payloads. An error wraps ErrPayload; the
// messages before it are returned with it.
func ReadPacket(data []byte, near func(to ID) (Reference, bool)) ([]Message, error) {
	r := reader{data: data}
	names := r.names()
	read := 0 // bytes of payloads
	messages := make([]Message, 0, min(len(r.data)/2, 1<<14))
	var to []ID
	for len(r.data) > 0 {
		from := ID(r.u32())
		to = r.set(names, to[:0])
		size := r.number()
		if size/2 > maxPayload {
			r.fail("a payload of %d bytes", size/2)
		}
		payload := r.next(int(size / 2))
		var list []ID
		if size%2 == 1 {
			list = r.set(names, make([]ID, 0, 64))
			slices.Sort(list)
		}
		if len(messages)+len(to) > maxMessages {
			r.fail("more than %d messages", maxMessages)
		}
		if r.err == nil && (len(to) == 0 || len(payload) == 0 || len(list) > MaxReceivers) {
			r.fail("a letter to nobody, of nothing, or with a list of %d", len(list))
		}
		if r.err != nil {
			break
		}
		var p Payload
		for _, id := range to {
			ref, ok := near(id)
			if !ok {
				continue
			}
			if p == nil || shortForm(payload) { // short forms decode differently for each receiver
				if read += len(payload); read > maxRead {
					return messages, fmt.Errorf("read packet: %w", refusePayload("payloads of more than %d bytes", maxRead))
				}
				var err error
				if p, err = readListed(payload, from, ref, list); err != nil {
					return messages, fmt.Errorf("read packet: %w", err)
				}
			}
			messages = append(messages, Message{From: from, To: id, Bytes: len(payload), Payload: p})
		}
	}
	if r.err != nil {
		return messages, fmt.Errorf("read packet: %w", r.err)
	}
	return messages, nil
}

// readListed decodes a payload. If list is not nil, it is the payload's receiver list. The list is sorted, and belongs
// to the payload afterwards.
func readListed(data []byte, from ID, near Reference, list []ID) (Payload, error) {
	p, err := ReadPayload(data, from, near)
	if err != nil || list == nil {
		return p, err
	}
	position, is := p.(*Position)
	if !is || position.Listed || position.Short {
		return nil, refusePayload("a receiver list where none belongs")
	}
	position.Listed, position.Receivers = true, list
	return position, nil
}

// names reads the avatars that sets refer to, each once.
func (r *reader) names() []ID {
	var names []ID
	for range 2 {
		for range r.count(true, maxNames-len(names), 4) {
			names = append(names, ID(r.u32()))
		}
	}
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) < len(names) {
		r.fail("a name that comes twice")
	}
	return names
}

// set reads avatars, each once.
func (r *reader) set(names, ids []ID) []ID {
	for i, bits := range r.next(r.count(true, (len(names)+7)/8, 1)) {
		for ; bits != 0; bits &= bits - 1 {
			at := 8*i + mathbits.TrailingZeros8(bits)
			if at >= len(names) {
				r.fail("one who is not named")
				return ids
			}
			ids = append(ids, names[at])
		}
	}
	return ids
}

// shortForm reports whether a payload decodes differently for readers at different positions.
func shortForm(payload []byte) bool {
	return len(payload) > 1 && Kind(payload[0]) != KindGossip && payload[1]&flagCompact != 0
}
