//go:build !fault

package region

import "github.com/voxelpopuli/voxeld/region/actor"

// provocation returns nil in a production build.
func provocation() func(tx actor.Tx, entry []byte) { return nil }
