// Package mods runs the scripts of mods.
package mods
