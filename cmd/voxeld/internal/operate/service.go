package operate

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/gameserver/services"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/policy/place"
)

func newService() *cobra.Command {
	c := &cobra.Command{
		Use: "service", Short: "Give programs keys to the world's HTTP API, list them, or take one back",
		Long: "Programs with a key read the world and change it over HTTP, at any node, below " + services.Path + ". What a key is good for is part of the\n" +
			"world's policy: it takes effect on all nodes within two seconds. Only nodes that give out tokens (voxeld peers) may do that.",
		Args: cli.NoArgs, Example: "  voxeld service add bridge --scopes read,chat\n  voxeld service list\n  voxeld service remove bridge",
	}
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Take the key of a service back", Args: cobra.ExactArgs(1), Example: "  voxeld service remove bridge",
	}
	cli.OnNode(remove, func(c *cobra.Command, args []string, socket string) error {
		return printText(c, socket, "/policy?"+url.Values{"text": {"service remove " + args[0]}}.Encode())
	})
	list := newQuery("list", "List the services", "/policy/services", func(w io.Writer, all []policy.Service) {
		fmt.Fprintln(w, "NAME\tSCOPES\tAREA\tBLOCKS/S\tUNTIL\tID")
		for _, v := range all {
			area, blocks, until := "-", "-", "-"
			if a := v.Area; a != nil {
				area = fmt.Sprintf("%d,%d:%d,%d", a.MinX, a.MinZ, a.MaxX, a.MaxZ)
			}
			if v.Rate > 0 {
				blocks = fmt.Sprint(v.Rate)
			}
			if v.Until > 0 {
				until = stamp(v.Until)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%v\n", v.Name, strings.Join(v.Scopes, ","), area, blocks, until, v.ID)
		}
	})
	list.Example = "  voxeld service list\n  voxeld service list --json"
	c.AddCommand(newServiceAdd(), list, remove)
	return c
}

func newServiceAdd() *cobra.Command {
	var scopes []string
	var area string
	var expires time.Duration
	v := policy.Service{}
	c := &cobra.Command{
		Use: "add NAME", Short: "Print a new key for a program", Args: cobra.ExactArgs(1),
		Long: "Prints a key. No node stores it: keep it like a password. If there is a service of that NAME, the key takes the place of its key.\n\n" +
			"Scopes are what it is good for: read (players, blocks, history, events), edit (change blocks), chat (write to all players).",
		Example: "  voxeld service add bridge --scopes read,chat\n  voxeld service add artist --scopes read,edit --area 0,0:127,127 --rate 500 --expires 720h",
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		key := services.NewKey()
		v.Name, v.ID, v.Scopes = args[0], key.ID(), scopes
		if len(scopes) == 0 {
			return cli.Usage(errors.New("--scopes: name at least one of " + strings.Join(policy.Scopes, ", ")))
		}
		if area != "" {
			box, err := grid.ParseBox(area)
			if err != nil {
				return cli.Usage(err)
			}
			v.Area = &place.Border{MinX: box.Min.X, MinZ: box.Min.Z, MaxX: box.Max.X, MaxZ: box.Max.Z}
		}
		if expires != 0 {
			v.Until = time.Now().Add(expires).UnixMilli()
		}
		var answer admin.Text
		if err := admin.Post(c.Context(), socket, "/policy?"+url.Values{"text": {"service " + v.String()}}.Encode(), &answer); err != nil {
			return err
		}
		if answer.Error != "" {
			return errors.New(answer.Error)
		}
		fmt.Fprintln(c.OutOrStdout(), key)
		return nil
	})
	c.Flags().StringSliceVar(&scopes, "scopes", nil, "what the key is good for: some of `"+strings.Join(policy.Scopes, ",")+"`")
	c.Flags().StringVar(&area, "area", "", "`X1,Z1:X2,Z2` in blocks: it may read and change blocks there only (default everywhere)")
	c.Flags().IntVar(&v.Rate, "rate", 0, "how many `blocks` a second it may change at a node (default 200)")
	c.Flags().DurationVar(&expires, "expires", 0, "how long the key is valid, such as 720h (default for good)")
	return c
}
