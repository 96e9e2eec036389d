package actor

import (
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Subscribe subscribes the gateway of a node. Reading is set if it accepts a read-only subscription where the disk
// refuses writes. It returns nil if the region is being unloaded.
func (l *Land) Subscribe(peer string, reading bool) *Subscription {
	s := newSubscriber(peer)
	s.reading = reading
	if !l.enqueue(func(l *land) { l.attach(s) }) {
		return nil
	}
	return &Subscription{region: l, subscriber: s, out: s.out, credit: make(chan struct{}, linkCredit)}
}

func (l *land) attach(s *subscriber) {
	l.hub.attach(s)
	l.idle = 0
	l.subscribe(s)
}

// handleMessage applies a message from a gateway, field by field in the order that nodemsg.ToRegion documents.
func (l *land) handleMessage(s *subscriber, msg nodemsg.ToRegion, proven []bool) {
	question := msg.Confirm
	for _, pos := range msg.Unwatch {
		l.hub.unwatch(s, pos)
	}
	for _, pos := range msg.Watch {
		if l.info.Cell.Contains(pos) {
			l.hub.watch(s, pos)
		}
	}
	owner := s.owner()
	for _, body := range msg.Enter {
		l.contents.crowd.Enter(owner, body)
	}
	for _, move := range msg.Moves {
		l.contents.crowd.Move(owner.Link, move)
	}
	for _, id := range msg.Leave {
		l.contents.crowd.Leave(owner.Link, id)
	}
	refused := ""
	if l.stalled != nil {
		refused = wire.RefusedUnavailable
	}
	for i, intent := range msg.Edits {
		why := refused
		if why == "" && l.RefuseEdit != nil { // gateways check it, too; they may lie, and it is counted
			why = l.RefuseEdit(&intent)
		}
		if why == "" && !proven[i] {
			why = wire.RefusedUnsigned
		}
		l.edits.add(s, intent, why)
	}
	for _, u := range msg.Chat {
		l.contents.crowd.Chat(owner.Peer, u)
	}
	if question != 0 {
		l.confirm(s, question)
	}
}
