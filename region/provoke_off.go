//go:build !fault

package region

import "github.com/voxelpopuli/voxeld/region/actor"

// provocation returns nil in a production build.
func provocation() func(l *actor.Land, entry []byte) { return nil }
