package servers

import (
	"fmt"
	"io"
	"net"
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

// Killing a client during a request does not end the server.
func TestDynaliteOutlivesItsClients(t *testing.T) {
	s := Dynalite(t)
	for range 20 {
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", s.Addr())
		if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 100"))); err != nil { // the server has begun to read
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-s.done:
		t.Fatalf("it has ended: %s", s.log())
	case <-time.After(200 * time.Millisecond):
	}
	if !speaksHTTP(s) {
		t.Error("it does not answer")
	}
}
