//go:build !mutate

package store

// mutated tells whether a seeded bug is switched on; see mutate_on.go. Without the build tag there is none, and the
// compiler removes them.
func mutated(string) bool { return false }
