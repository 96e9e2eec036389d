//go:build !unix

package gameserver

// takeOver leaves connections as they are.
func takeOver(*lineConn) (release func()) { return func() {} }

// directWriterOf returns nil: writers do all the writing.
func directWriterOf(*lineConn) directWriter { return nil }
