// Package config says how one daemon is configured: Config, the Options that cmd makes flags of, and
// the Token that invites another daemon to a world.
//
// Job: gather defaults, a TOML file, VOXELD_… variables and flags (the later ones win), and refuse what
// nobody would read: unknown keys, wrong types, impossible values, each with one error that says what to
// do. It opens the file and nothing else. No goroutine and no state.
//
// Who may import it: cmd only. Packages below take what they need as arguments.
package config
