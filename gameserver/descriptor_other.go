//go:build !unix

package gameserver

// takeOver leaves connections as they are.
func takeOver(*lineConn) (release func()) { return func() {} }

// promptly returns nil: writers do all the writing.
func promptly(*lineConn) prompter { return nil }
