package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Set by the linker in packages and by make (see Makefile and .goreleaser.yaml); empty in other builds.
var buildVersion, buildCommit string

// version returns buildVersion, else the commit that was built, else the module's version.
func version() string {
	return cmp.Or(buildVersion, commit(), moduleVersion())
}

// versionDetails returns the version, the commit, the version of Go and the platform, in one line.
func versionDetails() string {
	return fmt.Sprintf("%s (commit %s, %s, %s/%s)",
		version(), cmp.Or(commit(), "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commit returns the start of the hash of the commit that was built; "" if it is not known.
func commit() string {
	if buildCommit != "" {
		return buildCommit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return ""
}

func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
