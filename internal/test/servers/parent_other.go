//go:build !linux

package servers

import "os/exec"

// endWithParent needs Linux; elsewhere a program that is killed leaves its servers behind.
func endWithParent(*exec.Cmd) {}

// childrenOf are known on Linux only.
func childrenOf(int) []int { return nil }
