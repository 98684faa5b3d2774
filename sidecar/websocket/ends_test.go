package websocket

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir"
)

// While an upstream is being dialed, a connection has no sides that can receive a close frame. It ends as soon as it
// has.
func TestADrainFindsAConnectionThatIsBeingDialled(t *testing.T) {
	for name, end := range map[string]func(*site){
		"drain": func(s *site) { s.hub.Drain(0) },
		"moved": func(s *site) { s.stays = false; s.hub.Moved() },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, weir.Policy{}, Config{}, echo)
			defer s.Close()
			dialled := s.client.Transport.(*http.Transport).DialContext
			begun := make(chan struct{}, 1)
			slow := s.Transport()
			slow.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				begun <- struct{}{}
				<-time.After(time.Minute)
				return dialled(ctx, network, address)
			}
			s.dials = slow
			go func() {
				<-begun
				end(s)
			}()
			code, _ := ended(s.dial(t, "a"))
			if want := map[string]ws.StatusCode{"drain": restart, "moved": goingAway}[name]; code != want {
				t.Errorf("%s: the caller sees %v, want %v", name, code, want)
			}
			s.last(t, 1)
			x, _ := s.hub.Begin(Caller{Upstream: s.weir, Name: "up", Stays: func() bool { return false }})
			end(s)
			x.Leave() // the upstream declined
			<-time.After(time.Minute)
		})
	}
}

// rawly opens a connection of a caller that writes its own frames.
func (s *site) rawly(t *testing.T) net.Conn {
	t.Helper()
	c, err := s.Dial(context.Background(), "tcp", "weir.test:80")
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest(http.MethodGet, "http://weir.test/", nil)
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
	if err := r.Write(c); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	return c
}

// frame returns the header of a masked frame with n bytes.
func frame(opcode byte, n uint64) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{0x80 | opcode, 0xff}, n), 0, 0, 0, 0)
}

// A peer that receives a close frame may be within a message, and stay there.
func TestAMessageThatNeverEndsHoldsNoConnection(t *testing.T) {
	for name, says := range map[string][]byte{
		"larger than may be":   append(frame(2, 1<<40), make([]byte, defaultMessage+2)...),
		"behind what is wrong": append(append(frame(1, 1), 0xff), frame(2, 1<<40)...),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, weir.Policy{}, Config{}, echo)
			defer s.Close()
			c, begin := s.rawly(t), time.Now()
			defer c.Close()
			go func() { _, _ = io.Copy(io.Discard, c) }()
			if _, err := c.Write(says); err != nil {
				t.Error(err)
			}
			s.last(t, 1)
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("%s: it ended after %v", name, took)
			}
		})
	}
}

// A request's body comes before the messages. An upstream that accepts immediately would read it as messages that no
// limit has admitted.
func TestAConnectionBeginsWithoutABody(t *testing.T) {
	for _, field := range []string{"Content-Length: 11", "Transfer-Encoding: chunked"} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, weir.Policy{}, Config{}, echo)
			defer s.Close()
			c, err := s.Dial(context.Background(), "tcp", "weir.test:80")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: weir.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
				"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"+field+"\r\n\r\n")
			if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: %v, %v", field, resp, err)
			}
		})
	}
}
