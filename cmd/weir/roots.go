//go:build image

package main

import (
	_ "time/tzdata" // where the system has no time zones, as in an image from scratch

	_ "golang.org/x/crypto/x509roots/fallback" // where it has no certificates
)
