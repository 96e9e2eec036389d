//go:build mutate

package replica

import "os"

// mutation names the seeded bug of this process: with the build tag mutate, VOXELD_MUTATION switches on one of the bugs
// that tools/mutants.sh lists, each beside the test that must notice it.
var mutation = os.Getenv("VOXELD_MUTATION")

func mutated(name string) bool { return mutation == name }
