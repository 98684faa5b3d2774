//go:build linux

package main

import (
	"bufio"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A process is found with its child. Both stop for the given time, and then continue.
func TestAFamilyStandsStill(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 600 & echo; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		signals(family(cmd.Process.Pid), syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	states := func() (all string) {
		for _, p := range family(cmd.Process.Pid) {
			all += string(p.state)
		}
		return all
	}
	becomes := func(want bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; {
			got := states()
			if len(got) == 2 && (got == "TT") == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("they are %q, want two that stand still: %v", got, want)
			}
		}
	}
	becomes(false)
	all := family(cmd.Process.Pid)
	signals(all, syscall.SIGSTOP)
	becomes(true)
	signals(all, syscall.SIGCONT)
	becomes(false)
}
