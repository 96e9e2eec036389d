// Package mod has what a mod is: its content (a manifest and scripts), what an operator has granted it, the events that
// its scripts are passed, and the effects that they return.
//
// It is pure: package policy keeps the grants, package world applies the effects, and what runs scripts is above both.
package mod
