// Package config holds the configuration of a daemon: Config, the Options from which cmd makes its flags,
// and the join Token that invites another daemon to a world.
//
// Job: merge defaults, a TOML file, VOXELD_… variables and flags (later ones win), and refuse unknown keys,
// wrong types and impossible values, each with an error that names the remedy. It opens the file and nothing
// else. It has no goroutine and no state.
//
// Only commands read it: packages take what they need as arguments.
package config
