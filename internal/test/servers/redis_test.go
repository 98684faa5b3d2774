package servers

import (
	"strings"
	"testing"
	"time"
)

func TestRedisForgetsWithARestart(t *testing.T) {
	s := Redis(t)
	s.must("SET", "a", "1")
	if got := s.must("GET", "a"); got != "1" {
		t.Fatalf("got %q, want 1", got)
	}
	s.Kill()
	if _, err := s.Do("PING"); err == nil {
		t.Fatal("a killed server answers")
	}
	s.Restart()
	if got := s.must("GET", "a"); got != "" {
		t.Errorf("after a restart: got %q, want nothing", got)
	}
}

func TestStoppedServerGoesOn(t *testing.T) {
	s := Redis(t)
	s.Stop()
	answered := make(chan error)
	go func() {
		_, err := s.Do("PING")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a stopped server answers: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.Cont()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
}

func TestReplicaTakesOver(t *testing.T) {
	s := Redis(t)
	r := Replica(t, s)
	s.must("SET", "a", "1")
	r.CaughtUp(s)
	s.Kill()
	r.Promote()
	if got := r.must("GET", "a"); got != "1" {
		t.Errorf("got %q, want 1", got)
	}
	r.must("SET", "a", "2")
}

func TestSentinelPromotes(t *testing.T) {
	s := Redis(t)
	r := Replica(t, s)
	sentinel := Sentinel(t, "main", s)
	s.Kill()
	err := r.until(func() bool {
		info, _ := r.Do("INFO", "replication")
		return strings.Contains(info, "role:master")
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, sentinel.log())
	}
}

func TestClusterHoldsAllSlots(t *testing.T) {
	g := Cluster(t)
	moved := 0
	for _, s := range g.Nodes {
		if _, err := s.Do("SET", "{a}b", "1"); err != nil && strings.HasPrefix(err.Error(), "MOVED") {
			moved++
		}
	}
	if moved != 2 {
		t.Errorf("%d of 3 nodes say that another has the key, want 2", moved)
	}
}
