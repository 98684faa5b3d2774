package redisstore

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"
)

// Until there is a new connection after a demotion, calls report the server's refusal.
func TestWhyAServerThatWasDemotedIsLeftIsTold(t *testing.T) {
	d := newDialer(time.Second)
	d.reach = nowhere
	defer func() { d.cancel(); d.close() }()
	raw, server := net.Pipe()
	c, err := d.hand(raw, nil, "a:1", nil, nil)
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

// nowhere is an address that no attempt reaches.
func nowhere(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
