//go:build image

package main

import (
	_ "time/tzdata" // for systems without time zones, such as an image from scratch

	_ "golang.org/x/crypto/x509roots/fallback" // for systems without certificates
)
