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

// A process is one that runs, and in which state, as proc(5) says it.
type process struct {
	pid   int
	state byte
}

// family is a process and all that it has started, and what those have.
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

// readStat reads /proc/PID/stat: the name of a process stands in brackets, and may hold any.
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
		_ = syscall.Kill(p.pid, s) // or it has ended
	}
}
