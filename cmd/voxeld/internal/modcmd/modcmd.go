// Package modcmd has the commands for authors of mods, which need no running node.
package modcmd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/mods"
	runner "github.com/voxelpopuli/voxeld/region/mods"
)

// New returns the command and those below it: its own, and those that concern the mods of the world.
func New(ofWorld []*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: "mod", Short: "Write mods, scripts that give blocks a behaviour, and add them to the world", Args: cli.NoArgs,
		Example: "  voxeld mod new doorbell\n  voxeld mod add doorbell",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newNew(), newCheck())
	c.AddCommand(ofWorld...)
	return c
}

func newNew() *cobra.Command {
	return &cobra.Command{
		Use: "new NAME", Short: "Write a first mod into a new folder", Args: cobra.ExactArgs(1),
		Long: "Writes a small mod that works, to change, into a new folder of this name, with what an editor needs\n" +
			"to complete names and to find mistakes in it (Visual Studio Code and others: open the folder).",
		Example: "  voxeld mod new doorbell && voxeld mod check doorbell",
		RunE: func(c *cobra.Command, args []string) error {
			name := args[0]
			if err := mod.CheckName(name); err != nil {
				return cli.Usage(err)
			}
			if err := write(name); err != nil {
				return fmt.Errorf("write the mod: %w", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "Wrote %s: change %s and %s in it, then run: voxeld mod check %s\n",
				name, mod.ScriptFile, mod.ManifestFile, name)
			return nil
		},
	}
}

// model is the shipped mod that new ones begin as.
const model = "lamps"

// project is for editors. It is not part of the mod: files whose names begin with a dot, or their folder's, are not.
const project = `{
  "compilerOptions": { "checkJs": true, "strict": true, "noEmit": true, "target": "es2023", "lib": ["es2023"], "types": [] },
  "files": ["main.js", ".types/voxeld.d.ts"]
}
`

// write writes a new mod into the folder of its name, which must not exist.
func write(name string) error {
	files := map[string]string{"jsconfig.json": project, ".types/voxeld.d.ts": mod.Types()}
	for _, file := range []string{mod.ManifestFile, mod.ScriptFile} {
		text, err := fs.ReadFile(mods.Files, model+"/"+file)
		if err != nil {
			return err
		}
		files[file] = strings.Replace(string(text), fmt.Sprintf("name = %q", model), fmt.Sprintf("name = %q", name), 1)
	}
	if err := os.Mkdir(name, 0o755); err != nil { //nolint:gosec // sources, which others may read
		return err
	}
	for file, text := range files {
		path := filepath.Join(name, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as above
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check FOLDER", Short: "Check a mod: its manifest, and its script in the sandbox", Args: cobra.ExactArgs(1),
		Example: "  voxeld mod check doorbell",
		RunE: func(c *cobra.Command, args []string) error {
			packed, err := mod.Pack(os.DirFS(args[0]))
			if err != nil {
				return err
			}
			content, err := runner.Check(packed)
			if err != nil {
				return err
			}
			grant := content.Grant(mod.HashOf(packed))
			fmt.Fprintf(c.OutOrStdout(), "%s %s is in order: %s, %s\n", grant.Name, content.Version,
				humanize.Bytes(uint64(len(packed))), grant)
			return nil
		},
	}
}
