package mirror

// Notices about a region that cannot be reached, or can be reached again.
const (
	landAway = "The land here cannot be reached at the moment. Your edits wait."
	landBack = "The land here can be reached again."
)

// notifyUnreached notifies subscribers that no link has held for NoticeAfter.
func (sub *Subscription) notifyUnreached() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.mu.stable {
		return // since just now
	}
	sub.mu.notified = true
	sub.notifyAll(landAway)
}

// notifyReached records that the link has held, and notifies subscribers if they were notified that there was none.
func (sub *Subscription) notifyReached() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if !sub.mu.out.linked {
		return // it broke just now
	}
	sub.mu.stable = true
	if sub.mu.notified {
		sub.mu.notified = false
		sub.notifyAll(landBack)
	}
}

// notifyAll sends a notice to all subscribers. The lock is held; those of sessions and outboxes are taken below it.
func (sub *Subscription) notifyAll(text string) {
	notified := make(map[Subscriber]bool)
	for _, c := range sub.mu.chunks {
		for by := range c.subscribers {
			if !notified[by] {
				notified[by] = true
				by.SendNotice(text)
			}
		}
	}
}
