//go:build !linux && !darwin

package connlimit

const notSentLowat = 0

func boundUnsent(uintptr) {}
