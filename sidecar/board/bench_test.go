package board_test

import (
	"fmt"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/board"
)

// BenchmarkFrames measures a second of live pages for a thousand upstreams.
func BenchmarkFrames(b *testing.B) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("up-%04d", i)
	}
	s := open(b, policy, names...)
	end := board.Watch(s.board, "")
	defer end()
	for b.Loop() {
		board.Frames(s.board)
	}
}
