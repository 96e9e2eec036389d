// Package mods has the mods that voxeld is shipped with. Each is an example to learn from, and off until an operator
// grants it something.
package mods

import "embed"

// Files has a folder for each mod.
//
//go:embed lamps
var Files embed.FS
