// Package mods runs the scripts of mods for the regions that a node leads. One goroutine, Runner.Run, runs all of them,
// in the order in which they were submitted; so scripts take at most one core of a node, and no region ever waits for
// them. Regions, which keep the events, submit some of one mod at a time.
//
// Only region/actor and the commands for authors use it.
package mods
