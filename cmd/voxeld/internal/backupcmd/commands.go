// Package backupcmd holds the commands that make, verify and restore backups.
package backupcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/internal/config"
)

// Commands returns the commands. Found restores a world into the configuration's data directory.
func Commands(found func(context.Context, config.Config, Restore) error) []*cobra.Command {
	return []*cobra.Command{newBackup(), newVerify(), newRestore(found)}
}
