package main

// Root certificates for a system that has none, as a container from scratch: ACME needs them.
import _ "golang.org/x/crypto/x509roots/fallback"
