//go:build !unix

package servers

// Stop needs a system that can halt a process.
func (s *Server) Stop() { s.t.Fatalf("a process cannot be halted on this system") }

// Cont lets it go on.
func (s *Server) Cont() { s.t.Fatalf("a process cannot be halted on this system") }
