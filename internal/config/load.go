package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/go-viper/mapstructure/v2"
	"github.com/pelletier/go-toml/v2"
)

// Sources holds the sources of a configuration, in order of increasing precedence. The defaults of Options come before
// all.
type Sources struct {
	File    string              // a TOML file; empty: the file that VOXELD_CONFIG names, or else Default
	Default string              // a TOML file that is read if it exists, and neither a file nor a data directory is named
	Environ []string            // as os.Environ returns it
	Flags   map[string][]string // values of the flags that were set, by Option.Name
}

// SystemFile is the configuration of the node that a package installs: commands without --config and --data-dir mean
// this node.
const SystemFile = "/etc/voxeld/voxeld.toml"

// Source is the kind of source that set a value.
type Source string

// The kinds of sources, in order of increasing precedence.
const (
	FromDefault     Source = "default"
	FromFile        Source = "file"
	FromEnvironment Source = "environment"
	FromFlag        Source = "flag"
)

// Setting is the value of an option, and where it comes from.
type Setting struct {
	Option Option
	Value  any // of the type that the option's Kind names
	Source Source
	Origin string // the file's path, the variable or the flag; empty for a default
}

// Text returns the value as it is written on the command line.
func (s Setting) Text() string {
	switch v := s.Value.(type) {
	case []string:
		return strings.Join(v, ",")
	case time.Duration:
		return shortDuration(v)
	}
	return fmt.Sprint(s.Value)
}

// Redacted is Text for logs and other output that many can read: it leaves out the secrets of join tokens.
func (s Setting) Redacted() string {
	entries, ok := s.Value.([]string)
	if !ok {
		return s.Text()
	}
	shown := make([]string, len(entries))
	for i, entry := range entries {
		if shown[i] = entry; strings.HasPrefix(strings.TrimSpace(entry), secretPrefix) {
			shown[i] = secretPrefix + "…"
		}
	}
	return strings.Join(shown, ",")
}

// JSON returns the value for an encoder of JSON: a duration is a text.
func (s Setting) JSON() any {
	if d, ok := s.Value.(time.Duration); ok {
		return shortDuration(d)
	}
	return s.Value
}

// shortDuration returns 1m for 1m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// name returns what the user wrote: the flag, the variable, or the file and the key.
func (s Setting) name() string {
	switch s.Source {
	case FromFile:
		return s.Origin + ": " + s.Option.Key()
	case FromEnvironment, FromFlag:
		return s.Origin
	case FromDefault:
	}
	return s.Option.Key()
}

// Settings is a configuration, and where each of its values comes from.
type Settings struct {
	Config
	All  []Setting // in the order of Options
	File string    // the file that was read; empty if none was
}

// Changed returns the indices in All of the options whose values differ between s and next.
func (s Settings) Changed(next Settings) (all []int) {
	for i, setting := range s.All {
		if !reflect.DeepEqual(setting.Value, next.All[i].Value) {
			all = append(all, i)
		}
	}
	return all
}

// Load merges and validates a configuration. Its error has one line per problem.
func Load(s Sources) (Config, error) {
	settings, err := Read(s)
	return settings.Config, err
}

// Read is Load, and returns where each value comes from as well.
func Read(s Sources) (Settings, error) {
	environ, path, problems := fromEnviron(s.Environ)
	if s.File != "" {
		path = s.File
	}
	if path == "" && len(s.Flags["data-dir"]) == 0 && environ["data_dir"] == nil {
		if _, err := os.Stat(s.Default); err == nil {
			path = s.Default
		}
	}
	var written map[string]any
	if path != "" {
		values, err := fromFile(path)
		written, problems = values, append(problems, err)
	}
	flags, err := fromFlags(s.Flags)
	problems = append(problems, err)

	settings := Settings{All: make([]Setting, len(Options)), File: path}
	merged := make(map[string]any, len(Options))
	for i, o := range Options {
		setting := Setting{Option: o, Value: o.preset(), Source: FromDefault}
		for _, layer := range []struct {
			values map[string]any
			source Source
			origin string
		}{{written, FromFile, path}, {environ, FromEnvironment, o.Variable()}, {flags, FromFlag, "--" + o.Name}} {
			if value, ok := layer.values[o.Key()]; ok {
				setting = Setting{Option: o, Value: value, Source: layer.source, Origin: layer.origin}
			}
		}
		settings.All[i], merged[o.Key()] = setting, setting.Value
	}
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: &settings.Config, TagName: "toml", ErrorUnused: true, ErrorUnset: true, // Options and Config have the same keys
	})
	if err == nil {
		err = decoder.Decode(merged)
	}
	if err != nil {
		return Settings{}, fmt.Errorf("merge configuration: %w", err)
	}
	for _, p := range settings.problems(merged) {
		i := slices.IndexFunc(settings.All, func(s Setting) bool { return s.Option.Key() == p.key })
		problems = append(problems, prefixed(settings.All[i].name(), p.err))
	}
	if err := errors.Join(problems...); err != nil {
		return Settings{}, err
	}
	return settings, nil
}

// problem is what is wrong with the value of an option.
type problem struct {
	key string
	err error
}

// problems returns what is wrong with the configuration. Each error names the remedy.
func (c Config) problems(all map[string]any) []problem {
	var found []problem
	for _, o := range Options {
		if err := o.validate(all[o.Key()]); err != nil {
			found = append(found, problem{o.Key(), err})
		}
	}
	if path := c.AdminSocket(); len(path) > maxSocketPath {
		found = append(found, problem{"admin", fmt.Errorf("%q is %d bytes long; the path of a socket may have at most %d: choose a shorter one",
			path, len(path), maxSocketPath)})
	}
	if _, err := c.Bootstrap(); err != nil {
		found = append(found, problem{"join", err})
	}
	if c.ClassiCubeList != "" && c.ClassiCube == "" {
		found = append(found, problem{"classicube_list", errors.New("is set without classicube: there is nothing to list")})
	}
	return append(found, c.HTTPS.problems()...)
}

// prefixed returns the error with a prefix on each line: one problem is one line.
func prefixed(prefix string, err error) error {
	var all []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		all = append(all, fmt.Errorf("%s: %s", prefix, line))
	}
	return errors.Join(all...)
}

// fromFile reads a TOML file. It refuses unknown keys and values of another type than the option's, and leaves them
// out.
func fromFile(path string) (map[string]any, error) {
	var values map[string]any
	data, err := os.ReadFile(path)
	if err == nil {
		err = toml.Unmarshal(data, &values)
	}
	if err != nil {
		var syntax *toml.DecodeError
		if errors.As(err, &syntax) {
			line, column := syntax.Position()
			return nil, fmt.Errorf("%s:%d:%d: %w", path, line, column, err)
		}
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	known := map[string]any{}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		option, ok := byKey(key)
		if !ok {
			problems = append(problems, fmt.Errorf("%s: there is no option %s%s", path, key, DidYouMean(key, keys())))
			continue
		}
		value, err := option.typed(values[key])
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", path, key, err))
			continue
		}
		known[key] = value
	}
	return known, errors.Join(problems...)
}

// serviceLink matches the variables that Kubernetes sets in every container if a service is named voxeld. They are
// ignored.
var serviceLink = regexp.MustCompile(`^VOXELD_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// fromEnviron reads the VOXELD_ variables. file is the value of VOXELD_CONFIG.
func fromEnviron(environ []string) (values map[string]any, file string, problems []error) {
	variables := map[string]string{}
	for _, variable := range environ {
		if name, text, ok := strings.Cut(variable, "="); ok && strings.HasPrefix(name, prefix) {
			variables[name] = text
		}
	}
	values = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		text := variables[name]
		if name == fileVariable {
			file = text
			continue
		}
		i := slices.IndexFunc(Options, func(o Option) bool { return o.Variable() == name })
		if i < 0 {
			if !serviceLink.MatchString(name) {
				problems = append(problems, fmt.Errorf("environment: there is no option %s%s; unset it",
					name, DidYouMean(name, variableNames())))
			}
			continue
		}
		value, err := Options[i].parse([]string{text})
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			continue
		}
		values[Options[i].Key()] = value
	}
	return values, file, problems
}

func fromFlags(flags map[string][]string) (map[string]any, error) {
	values := map[string]any{}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		option, ok := byKey(strings.ReplaceAll(name, "-", "_"))
		if !ok {
			problems = append(problems, fmt.Errorf("there is no flag --%s", name))
			continue
		}
		value, err := option.parse(flags[name])
		if err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", name, err))
			continue
		}
		values[option.Key()] = value
	}
	return values, errors.Join(problems...)
}

func byKey(key string) (Option, bool) {
	for _, o := range Options {
		if o.Key() == key {
			return o, true
		}
	}
	return Option{}, false
}

func keys() []string {
	var all []string
	for _, o := range Options {
		all = append(all, o.Key())
	}
	return all
}

func variableNames() []string {
	all := []string{fileVariable}
	for _, o := range Options {
		all = append(all, o.Variable())
	}
	return all
}

// preset returns the default as a value.
func (o Option) preset() any {
	value, err := o.parse([]string{o.Default})
	if err != nil {
		panic(fmt.Sprintf("config: default of %s: %v", o.Name, err))
	}
	return value
}

// parse converts the texts of a variable or a flag to a value. The last text wins, except for lists, whose
// texts are joined.
func (o Option) parse(texts []string) (any, error) {
	var text string
	if len(texts) > 0 {
		text = strings.TrimSpace(texts[len(texts)-1])
	}
	switch o.Kind {
	case List:
		list := []string{}
		for part := range strings.SplitSeq(strings.Join(texts, ","), ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		return list, nil
	case Number:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return n, nil
	case Switch:
		switch strings.ToLower(text) {
		case "true", "1", "yes", "on":
			return true, nil
		case "false", "0", "no", "off":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", text)
	case Duration:
		return parseDuration(text)
	case Size:
		return parseSize(text)
	case Text, Address, URL, Path, Word:
	}
	return text, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write one such as 90s, 5m or 1h30m", text)
	}
	return d, nil
}

func parseSize(text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size: write bytes, or a number and a unit, such as 19200, 64kB or 64MiB", text)
	}
	return int64(n), nil
}

// typed checks the type of a value from TOML and converts it.
func (o Option) typed(value any) (any, error) {
	switch o.Kind {
	case List:
		elements, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("write a list of texts: [\"%v\"]", value)
		}
		list := []string{}
		for _, e := range elements {
			text, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("write a list of texts: %v is none", e)
			}
			list = append(list, text)
		}
		return list, nil
	case Number:
		if n, ok := value.(int64); ok && int64(int(n)) == n {
			return int(n), nil
		}
		return nil, fmt.Errorf("write a whole number without quotes, not %v", value)
	case Switch:
		if on, ok := value.(bool); ok {
			return on, nil
		}
		return nil, fmt.Errorf("write true or false without quotes, not %v", value)
	case Duration:
		if text, ok := value.(string); ok {
			return parseDuration(text)
		}
		return nil, fmt.Errorf("write a duration in quotes, such as \"90s\" or \"5m\", not %v", value)
	case Size:
		switch v := value.(type) {
		case int64:
			return v, nil
		case string:
			return parseSize(v)
		}
		return nil, fmt.Errorf("write a number of bytes, or a size in quotes, such as \"64MiB\", not %v", value)
	case Text, Address, URL, Path, Word:
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	return nil, fmt.Errorf("write a text in quotes, not %v", value)
}
