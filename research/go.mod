// The simulators of the papers are a module of their own: they import the daemon's state machines, and the daemon cannot
// import them.
module github.com/voxelpopuli/voxeld/research

go 1.26.0

require (
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.10
	github.com/voxelpopuli/voxeld v0.0.0
	golang.org/x/sync v0.25.0
)

require github.com/inconshreveable/mousetrap v1.1.0 // indirect

replace github.com/voxelpopuli/voxeld => ../
