// Package services is the HTTP API for programs outside of the world that have a key: docs/services.md, and openapi.json
// here, describe it; docs/adr/0119 says why it is so.
//
// A service is an author of edits as a player is: a gateway signs them with the service's key, which comes with each
// request, and hands them to the mirror, which requests them of the region until they are answered. It has no session
// and no body. What it reads comes from the mirror, the history and range queries; nothing is stored here.
//
// Any goroutine may use a Server. Requests run in the HTTP server's goroutines. The lock of an author and that of the
// streams are leaves: nothing is called under them.
package services
