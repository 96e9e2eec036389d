package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func newTextures() *cobra.Command {
	c := &cobra.Command{
		Use: "textures FILE|off", Short: "Set the texture pack of the world", Args: cobra.ExactArgs(1),
		Long: "Sets the texture pack that pages show, unless their player has chosen another one: a zip file of at most 3 MiB, as docs/client.md has it.\n" +
			"It travels to all nodes. Pages load it after they have joined, and show it from the next load on.",
		Example: "  voxeld textures autumn.zip\n  voxeld textures off",
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		if args[0] == "off" {
			return printText(c, socket, "/policy?"+url.Values{"text": {"set textures off"}}.Encode())
		}
		info, err := os.Stat(args[0])
		if err != nil {
			return err
		}
		if info.Size() > nodemsg.MaxContent {
			return fmt.Errorf("%s has %d bytes, and at most %d are allowed", args[0], info.Size(), nodemsg.MaxContent)
		}
		pack, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		response, err := admin.Send(c.Context(), socket, "/textures", pack)
		if err != nil {
			return err
		}
		var answer admin.Text
		if err := errors.Join(json.NewDecoder(response.Body).Decode(&answer), response.Body.Close()); err != nil {
			return fmt.Errorf("set the textures: %w", err)
		}
		return showText(c, answer)
	})
	return c
}
