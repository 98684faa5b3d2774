//go:build profile

package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

// A program with the build tag profile writes CPU profiles into the directory WEIR_PROFILES, for the time in WEIR_PROFILED
// (default 90s). make profile combines these files.
func init() {
	dir, long := os.Getenv("WEIR_PROFILES"), 90*time.Second
	if dir == "" {
		return
	}
	if d, err := time.ParseDuration(os.Getenv("WEIR_PROFILED")); err == nil {
		long = d
	}
	f, err := os.Create(fmt.Sprintf("%s/%d.pprof", dir, os.Getpid()))
	if err != nil {
		panic(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		panic(err)
	}
	time.AfterFunc(long, func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	})
}
