//go:build !unix

package servers

import "os/exec"

// Stop needs a system that can halt a process.
func (s *Server) Stop() { s.t.Fatalf("a process cannot be halted on this system") }

// Cont resumes a process.
func (s *Server) Cont() { s.t.Fatalf("a process cannot be halted on this system") }

// Shut needs a system that has signals.
func (s *Server) Shut() { s.t.Fatalf("a process cannot be interrupted on this system") }

func asNobody(*exec.Cmd) {}

func giveToNobody(string) error { return nil }
