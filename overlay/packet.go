package overlay

import (
	"encoding/binary"
	"fmt"
)

// A packet is what one gateway has for another in a round, for all their avatars. It is a sequence of letters, each a
// payload with its sender and those whom it is for:
//
//	from u32, receivers: a varint and u32 each, length of the payload: a varint, payload (see AppendPayload)
//
// A payload that goes to many avatars of one gateway, as most own updates do, is written once.

// MaxLetterReceivers is how many receivers one letter has at most. More get another letter.
const MaxLetterReceivers = 1024

// maxPayload bounds a payload's bytes: MaxUpdates updates in their longest form.
const maxPayload = 64 << 10

// AppendPacket appends messages, in their order but for those that share a payload with one before them.
func AppendPacket(b []byte, messages []Message) []byte {
	type letter struct {
		from    ID
		payload Payload
	}
	index := map[letter]int{}
	var letters []letter
	var receivers [][]ID
	i, ok := 0, false // of the message before: most share a letter with it
	for _, m := range messages {
		key := letter{m.From, m.Payload}
		if !ok || letters[i] != key {
			i, ok = index[key]
		}
		if !ok || len(receivers[i]) == MaxLetterReceivers {
			i, ok = len(letters), true
			index[key] = i
			letters = append(letters, key)
			receivers = append(receivers, nil)
		}
		receivers[i] = append(receivers[i], m.To)
	}
	for i, l := range letters {
		b = binary.LittleEndian.AppendUint32(b, uint32(l.from))
		b = binary.AppendUvarint(b, uint64(len(receivers[i])))
		for _, to := range receivers[i] {
			b = binary.LittleEndian.AppendUint32(b, uint32(to))
		}
		b = binary.AppendUvarint(b, uint64(PayloadBytes(l.from, l.payload)))
		b = AppendPayload(b, l.from, l.payload)
	}
	return b
}

// AppendPlaces appends what a payload of another gateway tells of where avatars are. A game may show that at once: a machine that
// finds it in its inbox will not know better.
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

// Renew puts a newer place and body into the sender's own update of a payload that was not sent yet: the machine had to say
// earlier whom it tells.
func Renew(p Payload, self Update) {
	renew := func(u *Update) {
		if u.Origin == self.Origin && u.Round == self.Round {
			u.At, u.Body = self.At, self.Body
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

// ReadPacket reads what AppendPacket wrote. near is what is known where a receiver is, or false for an avatar that is not
// there: what is for it is left out. Bytes of the messages is the length of their payloads. An error wraps ErrPayload; the
// messages before it are returned with it.
func ReadPacket(data []byte, near func(to ID) (Reference, bool)) ([]Message, error) {
	var messages []Message
	r := reader{data: data}
	for len(r.data) > 0 {
		from := ID(r.u32())
		to := make([]ID, r.count(true, MaxLetterReceivers, 4))
		for i := range to {
			to[i] = ID(r.u32())
		}
		payload := r.next(r.count(true, maxPayload, 1))
		if r.err == nil && (len(to) == 0 || len(payload) == 0) {
			r.fail("a letter to nobody, or of nothing")
		}
		if r.err != nil {
			return messages, fmt.Errorf("read packet: %w", r.err)
		}
		var p Payload
		for _, id := range to {
			ref, ok := near(id)
			if !ok {
				continue
			}
			if p == nil || shortForm(payload) { // which reads differently for each
				var err error
				if p, err = ReadPayload(payload, from, ref); err != nil {
					return messages, fmt.Errorf("read packet: %w", err)
				}
			}
			messages = append(messages, Message{From: from, To: id, Bytes: len(payload), Payload: p})
		}
	}
	return messages, nil
}

// shortForm tells whether a payload reads differently for readers at different places.
func shortForm(payload []byte) bool {
	return len(payload) > 1 && Kind(payload[0]) != KindGossip && payload[1]&flagCompact != 0
}
