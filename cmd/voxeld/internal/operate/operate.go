// Package operate holds the commands with which operators query and control a running node, over its admin socket
// (internal/admin).
package operate

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newInvite(), newStatus(), newPeers(), newRegions(), newDoctor(), newDrain(), newReload(), newRegion(), newTextures(), newHealthcheck(), newDebug(),
	}
}
