//go:build profile

package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

// What is built with the tag profile writes where its processor time goes to a file of the directory
// WEIR_PROFILES, for as long as WEIR_PROFILED says (90s): default.pgo is made of such files (make profile).
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
