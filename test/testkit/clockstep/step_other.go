//go:build !(linux && amd64)

package clockstep

import (
	"errors"
	"time"
)

const missing = "stepping another process's clock needs Linux on amd64"

// Missing returns why clocks cannot be stepped here; "" if they can.
func Missing() string { return missing }

// Step makes the wall clock of a process differ from the machine's by the offset; 0 makes it right again.
func Step(int, time.Duration) error { return errors.New(missing) }
