// Package mirror holds the chunks that a gateway's players have in view.
//
// A Mirror subscribes to regions on behalf of subscribers, wherever these are led. It has one Subscription for each
// founding cell, with a mirror of every Chunk in view, and in it one feed for each region that the cell is divided
// into: a link to the leader. The leader sends only edits; the terrain under them is generated here (docs/adr/0003), by
// the goroutines that run Build. Values go down, from sessions to regions: watch, enter, move, edit, chat. Events come
// up, to each Subscriber: whole chunks, deltas, results and notices.
//
// A subscriber receives the changes of one chunk in the order in which the region committed them: deltas and whole
// chunks are sent under the subscription's lock, and a whole chunk is sent only if it is of the newest version. How
// they are encoded is the subscribers' business: a Delta and a Chunk keep what each codec has made of them, so that it
// is made once.
//
// A whole chunk is sent once the region has answered a question of after the subscriber began to watch it: see
// confirm.go.
//
// An edit is pending from Subscription.Edit until the region answers it, over however many links. The mirror does not
// check it: sessions do before, and the region does.
//
// When a region is divided or merged it closes its links, and a feed learns from its next link which cell it has now
// (see feed.setRegion). Chunks, bodies and pending edits are the subscription's, so they stay where they are, and
// subscribers need not know. A body that crosses the border of two feeds leaves one region and enters the other.
//
// Goroutines: two for each feed, and those that run Build. Locks, in order: sender, Mirror.mu, Subscription.mu,
// jobs.mu; under Subscription.mu also those of Interest, Overlay and the subscribers. None is held while a goroutine
// waits, except sender: it is locked while the link takes a message, and others only try to lock it.
package mirror
