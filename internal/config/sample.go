package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Sample returns a configuration file with all options and their defaults, commented out.
func Sample() string {
	var b strings.Builder
	b.WriteString("# Configuration of voxeld. Remove the # in front of an option to change it. Variables VOXELD_… and flags of\n" +
		"# voxeld run override this file. Check it with voxeld config validate; see what a node uses with voxeld config show.\n" +
		"# Options marked [reload] can be changed while the node runs: run voxeld reload after a change.\n")
	for _, g := range Groups {
		fmt.Fprintf(&b, "\n\n### %s\n", g.Name)
		for _, o := range g.Options {
			usage := o.Usage
			if o.Kind == Word {
				usage = strings.Join(o.Words, ", ") + ": " + usage
			}
			if o.Reload {
				usage += " [reload]"
			}
			b.WriteString("\n" + comment(usage, 110))
			fmt.Fprintf(&b, "#%s = %s\n", o.Key(), inTOML(o.preset()))
		}
	}
	return b.String()
}

// inTOML returns a value as it is written in a TOML file.
func inTOML(value any) string {
	switch v := value.(type) {
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case string:
		return strconv.Quote(v)
	case time.Duration:
		return strconv.Quote(shortDuration(v))
	}
	return fmt.Sprint(value)
}

// comment breaks text into lines of at most limit bytes, each with "# " in front.
func comment(text string, limit int) string {
	var b strings.Builder
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > limit {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}
