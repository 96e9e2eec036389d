package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// validate returns what is wrong with a value of the option's type, and what is accepted.
func (o Option) validate(value any) error {
	if o.Kind == Word {
		word, _ := value.(string)
		if !slices.Contains(o.Words, word) {
			return fmt.Errorf("%q is not known: choose one of %s%s", word, strings.Join(o.Words, ", "), DidYouMean(word, o.Words))
		}
	}
	if o.check == nil {
		return nil
	}
	return o.check(value)
}

// checked adapts a check of one type to values of any. Load has converted the values to their types.
func checked[T any](check func(T) error) func(any) error {
	return func(value any) error {
		v, ok := value.(T)
		if !ok {
			return fmt.Errorf("%v has another type than its option", value)
		}
		return check(v)
	}
}

func text(check func(string) error) func(any) error { return checked(check) }

func hostPort(definite bool) func(any) error {
	return text(func(addr string) error { return checkHostPort(addr, definite) })
}

func unlessEmpty(check func(any) error) func(any) error {
	return func(value any) error {
		if value == "" {
			return nil
		}
		return check(value)
	}
}

func each(check func(string) error) func(any) error {
	return checked(func(all []string) error {
		var problems []error
		for _, one := range all {
			problems = append(problems, check(one))
		}
		return errors.Join(problems...)
	})
}

func oneTo(most int) func(any) error {
	return checked(func(n int) error {
		if n < 1 || n > most {
			return fmt.Errorf("%d is out of range: choose 1 to %d", n, most)
		}
		return nil
	})
}

func upTo(most int) func(any) error {
	return checked(func(n int) error {
		if n < 0 || n > most {
			return fmt.Errorf("%d is out of range: choose 0 to %d", n, most)
		}
		return nil
	})
}

func bytesBetween(least, most int64) func(any) error {
	return checked(func(n int64) error {
		if n < least || n > most {
			return fmt.Errorf("%d bytes are out of range: choose %s to %s", n, humanize.Bytes(uint64(least)), humanize.Bytes(uint64(most)))
		}
		return nil
	})
}

// atLeast refuses durations below the least. 0 is accepted if it disables something.
func atLeast(least time.Duration, orZero bool) func(any) error {
	return checked(func(d time.Duration) error {
		switch {
		case d >= least, d == 0 && orZero:
			return nil
		case orZero:
			return fmt.Errorf("%v is neither 0 nor a duration of at least %v", d, least)
		}
		return fmt.Errorf("%v is too short: choose at least %v", d, least)
	})
}

var checkDataDir = text(func(path string) error {
	if path == "" {
		return errors.New("is empty: name a directory that this daemon can write to")
	}
	return nil
})

func checkListens(value any) error {
	if all, ok := value.([]string); ok && len(all) == 0 {
		return errors.New("is empty: set at least one multiaddr, such as /ip4/0.0.0.0/tcp/4001")
	}
	return each(checkListen)(value)
}
