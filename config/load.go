package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	tomlparser "github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/pelletier/go-toml/v2"
)

// Sources holds the sources of a configuration, in order of increasing precedence. The defaults of Options come before all.
type Sources struct {
	File    string              // a TOML file; empty: the file that VOXELD_CONFIG names, or none
	Environ []string            // as os.Environ returns it
	Flags   map[string][]string // values of the flags that were set, by Option.Name
}

// Load merges and validates a configuration. Its error has one line per problem.
func Load(s Sources) (Config, error) {
	environ, path, problems := fromEnviron(s.Environ)
	if s.File != "" {
		path = s.File
	}
	layers := []map[string]any{{}, {}, environ, {}}
	for _, o := range Options {
		var err error
		if layers[0][o.Key()], err = o.parse([]string{o.Default}); err != nil {
			panic(fmt.Sprintf("config: default of %s: %v", o.Name, err))
		}
	}
	if path != "" {
		values, err := fromFile(path)
		layers[1], problems = values, append(problems, err)
	}
	values, err := fromFlags(s.Flags)
	layers[3], problems = values, append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return Config{}, err
	}

	k := koanf.New(".")
	for _, layer := range layers {
		if err := k.Load(parsed(layer), nil); err != nil {
			return Config{}, fmt.Errorf("merge configuration: %w", err)
		}
	}
	var c Config
	err = k.UnmarshalWithConf("", &c, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		TagName: "koanf", ErrorUnused: true, ErrorUnset: true, // Options and Config have the same keys
	}})
	if err != nil {
		return Config{}, fmt.Errorf("merge configuration: %w", err)
	}
	if err := c.Validate(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// parsed is a koanf.Provider of already parsed values, by key.
type parsed map[string]any

func (p parsed) Read() (map[string]any, error) { return maps.Clone(p), nil }
func (p parsed) ReadBytes() ([]byte, error)    { return nil, errors.ErrUnsupported }

// fromFile reads a TOML file. It refuses unknown keys and values of another type than the option's.
func fromFile(path string) (map[string]any, error) {
	k := koanf.New(".")
	if err := k.Load(file.Provider(path), tomlparser.Parser()); err != nil {
		var syntax *toml.DecodeError
		if errors.As(err, &syntax) {
			line, column := syntax.Position()
			return nil, fmt.Errorf("%s:%d:%d: %w", path, line, column, err)
		}
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	values := k.Raw()
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		option, ok := byKey(key)
		if !ok {
			problems = append(problems, fmt.Errorf("%s: there is no option %s%s", path, key, didYouMean(key, keys())))
			continue
		}
		value, err := option.typed(values[key])
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", path, key, err))
		}
		values[key] = value
	}
	return values, errors.Join(problems...)
}

// serviceLink matches the variables that Kubernetes sets in every container if a service is named voxeld. They are ignored.
var serviceLink = regexp.MustCompile(`^VOXELD_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// fromEnviron reads the VOXELD_ variables. file is the value of VOXELD_CONFIG.
func fromEnviron(environ []string) (values map[string]any, file string, problems []error) {
	provider := env.Provider("", env.Opt{Prefix: prefix, EnvironFunc: func() []string { return environ }})
	variables, err := provider.Read()
	if err != nil {
		return nil, "", []error{fmt.Errorf("read environment: %w", err)}
	}
	values = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		text, _ := variables[name].(string) // always a string: no transformation is set
		if name == fileVariable {
			file = text
			continue
		}
		i := slices.IndexFunc(Options, func(o Option) bool { return o.Variable() == name })
		if i < 0 {
			if !serviceLink.MatchString(name) {
				problems = append(problems, fmt.Errorf("environment: there is no option %s%s; unset it",
					name, didYouMean(name, variableNames())))
			}
			continue
		}
		value, err := Options[i].parse([]string{text})
		if err != nil {
			problems = append(problems, fmt.Errorf("environment: %s: %w", name, err))
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
	case Text, Duration: // Validate checks durations
	}
	return text, nil
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
	case Text, Duration:
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	return nil, fmt.Errorf("write a text in quotes, not %v", value)
}
