package actor

import "testing"

func TestMailbox(t *testing.T) {
	m := NewMailbox[int](2)
	if !m.Put(1) || !m.Put(2) || m.Put(3) {
		t.Error("the limit of 2 is not kept")
	}
	if m.CloseIfEmpty() {
		t.Error("closed with something in it")
	}
	<-m.Wake()
	if items, open := m.Drain(); len(items) != 2 || items[0] != 1 || !open {
		t.Errorf("took %v, open %v", items, open)
	}
	m.Put(4)
	m.Close()
	m.Close()
	<-m.Ended()
	if m.Put(5) {
		t.Error("put into a closed mailbox")
	}
	<-m.Wake()
	if items, open := m.Drain(); len(items) != 1 || items[0] != 4 || open {
		t.Errorf("took %v, open %v after the end", items, open)
	}
	if !NewMailbox[int](0).CloseIfEmpty() {
		t.Error("an empty mailbox did not close")
	}
}
