//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A process is a running process with its state from proc(5).
type process struct {
	pid   int
	state byte
}

// family returns a process and all its descendants.
func family(root int) (all []process) {
	children := make(map[int][]process)
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		p, parent, err := readStat(file)
		if err != nil {
			continue // it has ended
		}
		if p.pid == root {
			all = append(all, p)
		}
		children[parent] = append(children[parent], p)
	}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i].pid]...)
	}
	return all
}

// readStat parses /proc/PID/stat. The name of a process is in parentheses, and may itself contain parentheses.
func readStat(file string) (p process, parent int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return p, 0, err
	}
	if p.pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file))); err != nil {
		return p, 0, err
	}
	_, err = fmt.Sscanf(string(text[bytes.LastIndexByte(text, ')')+1:]), " %c %d", &p.state, &parent)
	return p, parent, err
}

func signals(all []process, s syscall.Signal) {
	for _, p := range all {
		_ = syscall.Kill(p.pid, s) // it may have ended
	}
}
