// Package history records who changed which block of a chunk, when, from what to what, and computes how changes are
// undone.
//
// A Log is a part of a region's replicated state: it follows from the region's log alone, and is the same on all
// members. Package world owns it, stores it and sends it; a Log is not safe for concurrent use. The encoded segments
// that Segments returns never change: any goroutine may decode them.
package history
