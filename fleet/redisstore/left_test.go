package redisstore

import (
	"net"
	"strings"
	"testing"
	"time"
)

// Between two connections to a server that was demoted, those who ask hear what it said.
func TestWhyAServerThatWasDemotedIsLeftIsTold(t *testing.T) {
	d := newDialer(time.Second)
	raw, server := net.Pipe()
	c, err := d.hand(raw, "a:1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.(*conn).made = time.Now().Add(-2 * longEnough)
	go func() { _, _ = server.Write([]byte("-READONLY You can't write against a read only replica.\r\n")) }()
	for b := make([]byte, 100); err == nil; {
		_, err = c.Read(b)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	down := &errDown{"a:1", d.node("a:1").why()}
	if down.err == nil || !strings.HasPrefix(down.err.Error(), "READONLY You can't") || !strings.Contains(down.Error(), "READONLY") {
		t.Errorf("ended by %v, and told: %v", err, down)
	}
}
