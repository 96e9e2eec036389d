//go:build !fault

package actor

// provocation returns nil in a production build.
func provocation() func(l *Land, entry []byte) { return nil }
