package machine

import (
	"os"

	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// CopyDir makes the directory to a copy of from, as an operator or a snapshot would. What was in it is gone.
func CopyDir(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return process.Run("cp", "-a", from, to)
}
