package backup

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Kind is how good a scheduled backup is.
type Kind string

// The kinds of scheduled backups, as their names have them. In an open world nobody signs, and all that are complete
// are good.
const (
	Good       Kind = ""
	Unsigned   Kind = "-unsigned"   // a region is not signed by a majority of its members
	Incomplete Kind = "-incomplete" // a region lacks a majority
)

// Name is the name of a scheduled backup, in a directory or as the end of an object's name: WORLD-ID-TIME.voxback of a
// full one, and WORLD-ID-TIME-001.voxback of the first incremental one that is based on that. So a name says which
// chain a file belongs to, and where it stands there. Within a chain the numbers count, and no clock.
type Name struct {
	World  string // name of the world, and a part of its id
	Begun  string // when the full backup of the chain was begun, in TimeLayout
	Number int    // 0: the full backup
	Kind   Kind
}

// TimeLayout is the layout of Name.Begun, in UTC.
const TimeLayout = "20060102T150405Z"

// Extension ends the names of backups.
const Extension = ".voxback"

var namePattern = regexp.MustCompile(`^(.+)-([0-9]{8}T[0-9]{6}Z)(?:-([0-9]{3}))?(-unsigned|-incomplete)?\.voxback$`)

// ParseName returns the name of a scheduled backup, and false for any other file.
func ParseName(file string) (Name, bool) {
	parts := namePattern.FindStringSubmatch(path.Base(filepath.ToSlash(file)))
	if parts == nil {
		return Name{}, false
	}
	n := Name{World: parts[1], Begun: parts[2], Kind: Kind(parts[4])}
	if _, err := time.Parse(TimeLayout, n.Begun); err != nil {
		return Name{}, false
	}
	n.Number, _ = strconv.Atoi(parts[3]) // three digits, or none
	return n, n.Number > 0 || parts[3] == ""
}

func (n Name) String() string {
	number := ""
	if n.Number > 0 {
		number = fmt.Sprintf("-%03d", n.Number)
	}
	return n.World + "-" + n.Begun + number + string(n.Kind) + Extension
}

// FileChain is the files of a full backup and of the incremental ones that are based on it.
type FileChain struct {
	Name // of the full one

	Files []string // in order; whatever comes after a gap is left out
	Loose []string // what comes after a gap, or without a full one
}

// Complete reports whether the chain has a full backup.
func (c FileChain) Complete() bool { return len(c.Files) > 0 }

// FileChains returns the chains of good backups among the files, those begun first first. Files of the same world in
// different directories are of different chains.
func FileChains(files []string) []FileChain {
	type key struct{ dir, world, begun string }
	found := make(map[key]map[int]string)
	for _, file := range files {
		n, ok := ParseName(file)
		if !ok || n.Kind != Good {
			continue
		}
		k := key{path.Dir(filepath.ToSlash(file)), n.World, n.Begun}
		if found[k] == nil {
			found[k] = make(map[int]string)
		}
		found[k][n.Number] = file
	}
	var all []FileChain
	for k, numbers := range found {
		c := FileChain{Name: Name{World: k.world, Begun: k.begun}}
		for i := 0; numbers[i] != ""; i++ {
			c.Files = append(c.Files, numbers[i])
			delete(numbers, i)
		}
		for _, file := range numbers {
			c.Loose = append(c.Loose, file)
		}
		slices.Sort(c.Loose)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b FileChain) int {
		return cmp.Or(cmp.Compare(a.Begun, b.Begun), cmp.Compare(a.World, b.World), slices.Compare(a.Files, b.Files))
	})
	return all
}

// Surplus returns the files of a world that are to be deleted, in that order, so that as many complete chains are left
// as should be kept: the newest one, which has just been verified, and those begun last before it. A chain whose time
// is later than that of the newest was begun while the clock was wrong, and is neither counted nor deleted.
func Surplus(files []string, newest Name, keep int) (surplus []string) {
	kept := 0
	for _, c := range slices.Backward(FileChains(files)) {
		switch {
		case c.World != newest.World || c.Begun > newest.Begun:
			continue
		case c.Begun == newest.Begun || kept < max(keep, 1):
			if c.Complete() {
				kept++
			}
			continue
		}
		for _, file := range slices.Backward(append(slices.Clone(c.Files), c.Loose...)) {
			surplus = append(surplus, file)
		}
	}
	return surplus
}
