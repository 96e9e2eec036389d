package machine

import (
	"fmt"
	"math/rand/v2"
	"os"
)

// FlipBits flips that many random bits of a file.
func FlipBits(path string, bits int, rng *rand.Rand) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("flip bits: %w", err)
	}
	defer file.Close() //nolint:errcheck // Sync has reported errors
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("flip bits: %w", err)
	}
	for range bits {
		at, b := rng.Int64N(info.Size()), make([]byte, 1)
		if _, err := file.ReadAt(b, at); err != nil {
			return fmt.Errorf("flip bits: %w", err)
		}
		b[0] ^= 1 << rng.IntN(8)
		if _, err := file.WriteAt(b, at); err != nil {
			return fmt.Errorf("flip bits: %w", err)
		}
	}
	return file.Sync()
}
