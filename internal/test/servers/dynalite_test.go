package servers

import (
	"testing"
	"time"
)

func TestDynaliteStopsAndComesBack(t *testing.T) {
	s := Dynalite(t)
	s.Kill()
	if speaksHTTP(s) {
		t.Fatal("a killed server answers")
	}
	s.Restart()
	s.Stop()
	answered := make(chan bool)
	go func() { answered <- speaksHTTP(s) }()
	select {
	case <-answered:
		t.Error("a stopped server answers")
	case <-time.After(50 * time.Millisecond):
	}
	s.Cont()
	if !<-answered {
		t.Error("a server that goes on does not answer")
	}
}
