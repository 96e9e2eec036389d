// Package hostile attacks nodes: a Liar has the identity and the certificate of a daemon that was stopped, and says
// what it wants; Strangers have neither. Tests and package chaos use it. All methods may be called from any goroutine.
package hostile
