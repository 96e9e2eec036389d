// Package raftframe encodes, decodes and checks what members of a raft group send each other: messages and snapshots.
// What it decodes is plausible on its own; package replica checks it against the group.
//
// It has no state.
package raftframe

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Raft messages between members travel in raft's own protobuf encoding. This file encodes and decodes it by hand: a
// busy node does that tens of thousands of times a second, and the protobuf library looks up each field in its tables
// and allocates each number separately. TestCodec checks that the bytes equal the library's.

// Numbers of the fields of raftpb.Message that travel between members, and of raftpb.Entry.
const (
	fieldType, fieldTo, fieldFrom, fieldTerm, fieldLogTerm, fieldIndex    = 1, 2, 3, 4, 5, 6
	fieldEntries, fieldCommit, fieldReject, fieldRejectHint, fieldContext = 7, 8, 10, 11, 12

	entryType, entryTerm, entryIndex, entryData = 1, 2, 3, 4
)

// Encode encodes a message for another member.
func Encode(m *raftpb.Message) ([]byte, error) {
	if m.Vote != nil || m.Snapshot != nil || m.Responses != nil {
		b, err := proto.Marshal(m) // a message that no member accepts is still sent in full
		if err != nil {
			return nil, fmt.Errorf("encode message: %w", err)
		}
		return b, nil
	}
	const numbers = 9 * 11 // at most, for each: a tag and ten bytes
	size := numbers + 2 + len(m.Context) + 10
	for _, e := range m.Entries {
		size += 2*11 + entrySize(e)
	}
	b := make([]byte, 0, size)
	if m.Type != nil {
		b = appendNumber(b, fieldType, uint64(*m.Type))
	}
	b = appendOptional(b, fieldTo, m.To)
	b = appendOptional(b, fieldFrom, m.From)
	b = appendOptional(b, fieldTerm, m.Term)
	b = appendOptional(b, fieldLogTerm, m.LogTerm)
	b = appendOptional(b, fieldIndex, m.Index)
	for _, e := range m.Entries {
		b = protowire.AppendTag(b, fieldEntries, protowire.BytesType)
		b = appendEntry(protowire.AppendVarint(b, uint64(entrySize(e))), e)
	}
	b = appendOptional(b, fieldCommit, m.Commit)
	if m.Reject != nil {
		b = appendNumber(b, fieldReject, protowire.EncodeBool(*m.Reject))
	}
	b = appendOptional(b, fieldRejectHint, m.RejectHint)
	if m.Context != nil {
		b = protowire.AppendBytes(protowire.AppendTag(b, fieldContext, protowire.BytesType), m.Context)
	}
	return b, nil
}

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendOptional(b []byte, field protowire.Number, v *uint64) []byte {
	if v == nil {
		return b
	}
	return appendNumber(b, field, *v)
}

// entrySize returns the length of the bytes that appendEntry appends.
func entrySize(e *raftpb.Entry) int {
	size := 0
	if e.Type != nil {
		size += 1 + protowire.SizeVarint(uint64(*e.Type))
	}
	if e.Term != nil {
		size += 1 + protowire.SizeVarint(*e.Term)
	}
	if e.Index != nil {
		size += 1 + protowire.SizeVarint(*e.Index)
	}
	if e.Data != nil {
		size += 1 + protowire.SizeBytes(len(e.Data))
	}
	return size
}

func appendEntry(b []byte, e *raftpb.Entry) []byte {
	if e.Type != nil {
		b = appendNumber(b, entryType, uint64(*e.Type))
	}
	b = appendOptional(b, entryTerm, e.Term)
	b = appendOptional(b, entryIndex, e.Index)
	if e.Data != nil {
		b = protowire.AppendBytes(protowire.AppendTag(b, entryData, protowire.BytesType), e.Data)
	}
	return b
}

// Decode decodes a message and checks everything that does not depend on a group's state.
func Decode(b []byte) (*raftpb.Message, error) {
	if len(b) > MaxMessage {
		return nil, fmt.Errorf("%d bytes, at most %d are allowed", len(b), MaxMessage)
	}
	m, err := parseMessage(b)
	if err != nil {
		return nil, err
	}
	if err := checkMessage(m); err != nil {
		return nil, err
	}
	return m, nil
}

// received is a decoded message together with its numbers, in one allocation.
type received struct {
	raftpb.Message
	kind    raftpb.MessageType
	reject  bool
	numbers [fieldRejectHint + 1]uint64 // by field
}

// receivedEntry is the same for an entry.
type receivedEntry struct {
	raftpb.Entry
	kind        raftpb.EntryType
	term, index uint64
}

// parseMessage decodes a message of another member. It retains nothing of b. Fields that do not travel between members
// (snapshot, vote, responses) and unknown ones are errors, so that a few bytes never need much memory.
func parseMessage(b []byte) (*raftpb.Message, error) {
	entries, size, err := countEntries(b)
	if err != nil {
		return nil, err
	}
	r := new(received)
	m := &r.Message
	var own []receivedEntry
	var data []byte // of all entries, which are allocated and freed together
	if entries > 0 {
		own, m.Entries = make([]receivedEntry, 0, entries), make([]*raftpb.Entry, 0, entries)
		data = make([]byte, 0, size)
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		b = b[n:] // countEntries has checked that fields and their values are complete
		if number == fieldEntries || number == fieldContext {
			if kind != protowire.BytesType {
				return nil, fmt.Errorf("field %d of kind %d", number, kind)
			}
			value, n := protowire.ConsumeBytes(b)
			b = b[n:]
			if number == fieldContext {
				m.Context = bytes.Clone(value)
				continue
			}
			own = append(own, receivedEntry{})
			e := &own[len(own)-1]
			at := len(data)
			data = append(data, value...)
			if err := e.parse(data[at:]); err != nil {
				return nil, err
			}
			m.Entries = append(m.Entries, &e.Entry)
			continue
		}
		if kind != protowire.VarintType {
			return nil, fmt.Errorf("field %d of kind %d", number, kind)
		}
		v, n := protowire.ConsumeVarint(b)
		b = b[n:]
		r.set(number, v)
	}
	return m, nil
}

func (r *received) set(number protowire.Number, v uint64) {
	m, at := &r.Message, &r.numbers[number]
	*at = v
	switch number {
	case fieldType:
		r.kind = raftpb.MessageType(int32(v))
		m.Type = &r.kind
	case fieldTo:
		m.To = at
	case fieldFrom:
		m.From = at
	case fieldTerm:
		m.Term = at
	case fieldLogTerm:
		m.LogTerm = at
	case fieldIndex:
		m.Index = at
	case fieldCommit:
		m.Commit = at
	case fieldReject:
		r.reject = protowire.DecodeBool(v)
		m.Reject = &r.reject
	case fieldRejectHint:
		m.RejectHint = at
	default: // countEntries accepts no other
	}
}

// parse decodes an entry, which retains b's memory. It skips fields that this version does not define.
func (e *receivedEntry) parse(b []byte) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		switch {
		case n < 0:
			return protowire.ParseError(n)
		case number > protowire.MaxValidNumber:
			return errors.New("invalid field number in an entry")
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return protowire.ParseError(n)
		}
		value := b[:n]
		b = b[n:]
		switch {
		case number == entryData && kind == protowire.BytesType:
			data, _ := protowire.ConsumeBytes(value)
			e.Data = data[:len(data):len(data)]
		case number > entryData:
		case kind != protowire.VarintType:
			return errors.New("invalid number in an entry")
		default:
			v, _ := protowire.ConsumeVarint(value)
			switch number {
			case entryType:
				e.kind = raftpb.EntryType(int32(v))
				e.Type = &e.kind
			case entryTerm:
				e.term = v
				e.Term = &e.term
			case entryIndex:
				e.index = v
				e.Index = &e.index
			default: // of a later version
			}
		}
	}
	return nil
}

// countEntries inspects the encoding alone, so that decoding cannot need much more memory than the bytes: responses
// nest, and an entry of two bytes becomes a hundred. Size is that of the entries' bytes.
func countEntries(b []byte) (entries, size int, err error) {
	for len(b) > 0 {
		number, _, n := protowire.ConsumeField(b)
		if n < 0 {
			return 0, 0, protowire.ParseError(n)
		}
		b = b[n:]
		switch number {
		case fieldType, fieldTo, fieldFrom, fieldTerm, fieldLogTerm, fieldIndex, fieldCommit, fieldReject, fieldRejectHint, fieldContext:
		case fieldEntries:
			entries++
			size += n
		default: // 9 snapshot, 13 vote, 14 responses: not sent between members
			return 0, 0, fmt.Errorf("field %d", number)
		}
	}
	if entries > MaxEntries {
		return 0, 0, fmt.Errorf("%d entries, at most %d are allowed", entries, MaxEntries)
	}
	return entries, size, nil
}
