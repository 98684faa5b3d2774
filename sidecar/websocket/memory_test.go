package websocket

import (
	"context"
	"testing"
	"testing/synctest"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/buffers"
)

// Large messages count toward weir's memory budget for bodies, and their memory is returned.
func TestLargeMessagesWantRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const large = 300 << 10
		s := newSite(t, weir.Policy{}, Config{MaxMessage: large}, echo)
		defer s.Close()
		used, _, _ := buffers.Bodies.Use()
		say := func(c *ws.Conn) {
			go func() { _ = c.Write(context.Background(), ws.MessageBinary, make([]byte, large)) }()
		}
		c := s.dial(t, "a")
		say(c)
		if got := read(t, c); len(got) != large {
			t.Errorf("%d bytes came back", len(got))
		}
		synctest.Wait()
		if now, most, _ := buffers.Bodies.Use(); now != used || most < large {
			t.Errorf("%d are held, were %d; at most %d", now, used, most)
		}
		const piece = 64 << 10
		taken := int64(0)
		for buffers.Bodies.Take(piece) {
			taken += piece
		}
		say(c)
		if code, _ := ended(c); code != tryAgainLater {
			t.Errorf("without room: %v", code)
		}
		s.last(t, 1)
		if now, _, _ := buffers.Bodies.Use(); now != used+taken {
			t.Errorf("%d are held, %d by others", now, used+taken)
		}
		for ; taken > 0; taken -= piece {
			buffers.Bodies.Give(piece)
		}
	})
}
