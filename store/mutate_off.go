//go:build !mutate

package store

// mutated reports whether a seeded bug is switched on; see mutate_on.go. Without the build tag it is always false, and
// the compiler removes the bugs.
func mutated(string) bool { return false }
