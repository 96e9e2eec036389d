// Package wiretest holds what the tests of the wire packages share.
package wiretest

import (
	"errors"
	"testing"

	"github.com/voxelpopuli/voxeld/wire"
)

// RefusedOnly fails the test unless the error is one that untrusted input may cause.
func RefusedOnly(t *testing.T, err error) {
	t.Helper()
	var refused *wire.Error
	if !errors.As(err, &refused) || refused.Code == "" || len(refused.Message) > 1000 {
		t.Fatalf("%T: %v", err, err)
	}
}

// CodeOf returns the code of a *wire.Error, "" for none, and fails the test for any other error.
func CodeOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var refused *wire.Error
	if !errors.As(err, &refused) {
		t.Fatalf("error is %T, want *wire.Error: %v", err, err)
	}
	if refused.Message == "" || len(refused.Message) > 300 {
		t.Fatalf("message of %d bytes: %q", len(refused.Message), refused.Message)
	}
	return refused.Code
}
